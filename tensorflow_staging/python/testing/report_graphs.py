# SPDX-License-Identifier: Apache-2.0
"""Graphs for the tests of `tf.staging.explain`."""

import tensorflow as tf


def batch(*, drop_remainder: bool = False) -> dict[str, tf.Tensor]:
  """Returns the next batch of an iterator: two rows, each with a string and three numbers."""
  rows = {"word": tf.constant(["a", "b", "c", "d"]), "numbers": tf.ones([4, 3])}
  dataset = tf.data.Dataset.from_tensor_slices(rows).batch(2, drop_remainder=drop_remainder)
  return tf.data.make_one_shot_iterator(dataset).get_next()


def model() -> tf.Tensor:
  """Adds a model that hashes a word, looks up its embedding and multiplies; returns the loss that a step computes."""
  features = batch()
  with tf.name_scope("hash"):
    key = tf.string_to_hash_bucket_fast(features["word"], 10, name="bucket")
  embedding = tf.get_variable("embedding", [10, 3])
  row = tf.nn.embedding_lookup(embedding, key, name="embedding_lookup")
  return tf.reduce_sum(row * features["numbers"], name="loss")


def large_model(nodes: int) -> None:
  """Adds about `nodes` nodes in nested scopes, half of which can run ahead of the step."""
  numbers = batch()["numbers"]
  weight = tf.get_variable("weight", initializer=1.0, use_resource=True)
  for tower in range(8):
    ahead = _layers(numbers, f"input/tower_{tower}", nodes // 16)
    _layers(ahead * weight, f"model/tower_{tower}", nodes // 16)


def _layers(x: tf.Tensor, scope: str, nodes: int) -> tf.Tensor:
  """Adds a sequence of `Identity` nodes, 50 to a layer and 7 layers to a block, and returns the last one.

  It imports a GraphDef, which is faster than adding the nodes one by one.
  """
  definition = tf.GraphDef()
  previous = "x"
  for node in range(nodes):
    layer = node // 50
    name = f"block_{layer // 7}/layer_{layer % 7}/identity_{node % 50}"
    definition.node.add(name=name, op="Identity", input=[previous]).attr["T"].type = x.dtype.as_datatype_enum
    previous = name
  last, = tf.import_graph_def(definition, {"x": x}, [previous + ":0"], name=scope)
  return last
