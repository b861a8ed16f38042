# SPDX-License-Identifier: Apache-2.0
"""The two kinds of stages, for tests that expect the same of both."""

import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import smart_stage_sessions

KINDS = {"staged": False, "smart_stage": True}

# Runs a test with each kind.
BOTH = pytest.mark.parametrize("smart_stage", KINDS.values(), ids=KINDS)


def stage(tensor: tf.Tensor, smart_stage: bool, **options) -> tuple[tf.Tensor, tf.ConfigProto]:
  """Computes a tensor ahead of the step.

  Args:
    tensor: A tensor of type int64.
    smart_stage: Whether SmartStage does it, and not `tf.staged`.
    **options: Arguments that both kinds have, such as `capacity`.

  Returns:
    The tensor as the step sees it, and the configuration for the session. The step needs the graph's variables.
  """
  # Only a step that needs a variable keeps something behind SmartStage's stage.
  zero = tf.get_variable("zero", initializer=tf.zeros([], tf.int64), use_resource=True)
  if smart_stage:
    return tensor * 1 + zero, smart_stage_sessions.smart_stage_config(**options)
  return tf.staged(tensor, **options) + zero, tf.ConfigProto()
