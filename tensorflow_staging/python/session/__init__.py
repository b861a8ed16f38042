# SPDX-License-Identifier: Apache-2.0
"""Runs the stages of a graph in a session: the hook, starting and stopping, interrupts."""
