# SPDX-License-Identifier: Apache-2.0
"""Tells a program of TensorFlow 2 that the environment variable has changed nothing in it, and what to use instead."""

import atexit
import os

from tensorflow.python.eager import context

from tensorflow_staging.python.automatic import setting


@atexit.register
def _end() -> None:
  if os.environ.get(setting.VARIABLE) != setting.Setting.ON.value or not _has_run():
    return
  # This module is imported before those that it needs here.
  from tensorflow_staging.python.automatic import notices  # pylint: disable=g-import-not-at-top

  # A session has said something by itself.
  if not notices.has_said_anything():
    notices.say_there_was_no_session()


def _has_run() -> bool:
  """Returns whether this process has run something of TensorFlow 2, and not only imported it."""
  return context.executing_eagerly() and context.context()._initialized
