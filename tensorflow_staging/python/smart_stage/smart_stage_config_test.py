# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.smart_stage_config` turns SmartStage on in a copy of a configuration."""

import pytest
import tensorflow as tf


def test_it_sets_the_fields_in_a_copy():
  given = tf.ConfigProto(inter_op_parallelism_threads=3)
  config = tf.staging.smart_stage_config(given, tf.SmartStageOptions(capacity=5))
  options = config.graph_options.optimizer_options
  assert options.do_smart_stage and options.smart_stage_options.capacity == 5
  assert config.inter_op_parallelism_threads == 3
  assert given == tf.ConfigProto(inter_op_parallelism_threads=3)


def test_without_arguments_it_is_the_default():
  expected = tf.ConfigProto()
  expected.graph_options.optimizer_options.do_smart_stage = True
  assert tf.staging.smart_stage_config() == expected


@pytest.mark.parametrize("arguments, name", [((3,), "config"), ((None, 3), "options")])
def test_wrong_types(arguments, name):
  with pytest.raises(TypeError, match=f"{name} must be None or .* got 3 of type int"):
    tf.staging.smart_stage_config(*arguments)
