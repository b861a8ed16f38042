# SPDX-License-Identifier: Apache-2.0
"""Chooses the version of control flow that tests build."""

import contextlib
from collections.abc import Iterator

import tensorflow.compat.v1 as tf


@contextlib.contextmanager
def version(number: int) -> Iterator[None]:
  """Builds conditionals and loops of version `number`, 1 or 2, inside the context."""
  enabled = tf.control_flow_v2_enabled()
  _enable(number == 2)
  try:
    yield
  finally:
    _enable(enabled)


def _enable(version_2: bool) -> None:
  (tf.enable_control_flow_v2 if version_2 else tf.disable_control_flow_v2)()
