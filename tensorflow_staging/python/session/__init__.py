# SPDX-License-Identifier: Apache-2.0
"""Running the stages of a graph in a session: the hook, starting, stopping, interrupts."""
