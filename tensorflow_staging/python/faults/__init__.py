# SPDX-License-Identifier: Apache-2.0
"""Tests of what goes wrong outside the stages: no code, and not part of the wheel.

The tests of the other folders lie beside the code that they test. A fault (a signal, a fork, a full disk) has no such
place: it meets all of the code at once, and must end within seconds and leave nothing behind. docs/reliability.md lists
each fault with its test.
"""
