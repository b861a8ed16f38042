# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.allow_stale`."""

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from tensorflow_staging.python import vocabulary


def _marked() -> set[str]:
  return {
      node.name for node in tf.get_default_graph().as_graph_def().node
      if vocabulary.MAY_BE_STALE_ATTR in node.attr and node.attr[vocabulary.MAY_BE_STALE_ATTR].b
  }


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_variables_in_any_nesting_are_marked(use_resource):
  with tf.variable_scope("", use_resource=use_resource):
    one, two, _ = (tf.get_variable(name, [2, 2]) for name in ("one", "two", "three"))
  tf.staging.allow_stale({"a": [one], "b": (two,)})
  assert _marked() == {"one", "two"}


def test_each_part_of_a_partitioned_variable_is_marked():
  table = tf.get_variable("table", [4, 2], partitioner=tf.fixed_size_partitioner(2))
  tf.staging.allow_stale(table)
  assert _marked() == {"table/part_0", "table/part_1"}


@pytest.mark.parametrize("wrong", [3, None, "table"])
def test_what_is_no_variable_is_refused(wrong):
  table = tf.get_variable("table", [2])
  with pytest.raises(TypeError, match=rf"variables\[1\] must be a variable of a graph, got {wrong!r} of type"):
    tf.staging.allow_stale([table, wrong])
  assert not _marked()


def test_a_tensor_is_refused():
  with pytest.raises(TypeError, match="must be a variable of a graph, got .*Tensor"):
    tf.staging.allow_stale(tf.constant(1))


def test_a_variable_of_another_graph_is_refused():
  with tf.Graph().as_default():
    table = tf.get_variable("table", [2])
  with pytest.raises(ValueError, match=r"variables is variable 'table:0' of graph .*must be a variable of the default"):
    tf.staging.allow_stale(table)


def test_no_variable_is_refused():
  with pytest.raises(ValueError, match=r"at least one variable, got \[\]"):
    tf.staging.allow_stale([])


def test_eager_mode_is_refused():
  with context.eager_mode(), pytest.raises(ValueError, match="eager execution is on"):
    tf.staging.allow_stale([])
