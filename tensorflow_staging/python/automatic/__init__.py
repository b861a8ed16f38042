# SPDX-License-Identifier: Apache-2.0
"""Turns SmartStage on or off in all sessions of a program, by an environment variable and without a changed line."""
