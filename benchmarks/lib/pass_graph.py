# SPDX-License-Identifier: Apache-2.0
"""Graphs of any size; half of their nodes can run ahead of the training step."""

from __future__ import annotations

import random

import tensorflow as tf

# The names of the ops that initialise the variable and update it.
INITIALIZER = "initializer"
TRAIN = "train"
# A node's inputs are among this many nodes before it.
_REACH = 200


def make(nodes: int) -> tf.Graph:
  """Builds a graph.

  Args:
    nodes: The approximate number of nodes.

  Returns:
    A graph with one iterator, sums that depend only on the iterator, and as many sums that depend also on a variable,
    which the last of them updates.
  """
  with tf.Graph().as_default() as graph:
    dataset = tf.data.Dataset.range(1_000_000)
    record = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    variable = tf.compat.v1.get_variable("variable", initializer=tf.constant(1, tf.int64), use_resource=True)
    total, = tf.import_graph_def(
        _sums(nodes), {"record": record, "variable": variable.read_value()}, [f"sum{nodes - 1}:0"], name="sums")
    tf.group(variable.initializer, name=INITIALIZER)
    tf.group(variable.assign_add(total), name=TRAIN)
  return graph


def _sums(nodes: int) -> tf.compat.v1.GraphDef:
  """Returns sums of two earlier nodes each. All depend on `record`, and those in the second half on `variable` too."""
  rng = random.Random(1)
  definition = tf.compat.v1.GraphDef()
  for name in ("record", "variable"):
    placeholder = definition.node.add(name=name, op="Placeholder")
    placeholder.attr["dtype"].type = tf.int64.as_datatype_enum
  names = ["record"]
  for number in range(nodes):
    first = "variable" if number == nodes // 2 else rng.choice(names[-_REACH:])
    # The previous node, so that every node of the second half depends on the variable.
    other = names[-1]
    node = definition.node.add(name=f"sum{number}", op="AddV2", input=[first, other])
    node.attr["T"].type = tf.int64.as_datatype_enum
    names.append(node.name)
  return definition
