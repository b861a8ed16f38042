# SPDX-License-Identifier: Apache-2.0
"""The error that a command reports in one line."""


class UserError(Exception):
  """What the user gave cannot be used; the message says why, with the value and what is allowed."""
