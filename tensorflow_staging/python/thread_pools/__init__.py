# SPDX-License-Identifier: Apache-2.0
"""The Python part of stage thread pools: options of partial runs, and the check of a server's configuration."""
