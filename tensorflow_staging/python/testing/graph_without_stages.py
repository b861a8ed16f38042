# SPDX-License-Identifier: Apache-2.0
"""A graph without its manual stages, for tests that compare both: made by hand, not by `tf.staging.unstaged`."""

import re

import tensorflow as tf

# The ops of a buffer that no step runs.
_BUFFER_OPS = re.compile("TensorBuffer(?!Take)")


def without_stages(graph: tf.Graph) -> tf.Graph:
  """Returns a copy of a graph in which each Take passes on what its stage's Put would get, under the same name."""
  graph_def = graph.as_graph_def()
  puts = {node.attr["shared_name"].s: node for node in graph_def.node if node.op == "TensorBufferPut"}
  kept = [node for node in graph_def.node if not _BUFFER_OPS.match(node.op)]
  for node in kept:
    if node.op == "TensorBufferTake":
      put = puts[node.attr["shared_name"].s]
      types = list(node.attr["dtypes"].list.type)
      # A StagedNode passes on all of its inputs: of an IdentityN, TensorFlow leaves out those that no one uses.
      node.op = "StagedNode"
      node.input[:] = [*put.input, *node.input]
      node.attr.clear()
      node.attr["Tcarried"].list.type[:] = types
      node.attr["dtypes"].list.type[:] = types
      node.attr["indices"].list.i[:] = range(len(types))
      node.attr["stage"].s = b"none"
    # Who is colocated with a Take is so with its Put.
    if any(b"/TensorBuffer" in name for name in node.attr["_class"].list.s):
      del node.attr["_class"]
  del graph_def.node[:]
  graph_def.node.extend(kept)
  with tf.Graph().as_default() as copy:
    tf.import_graph_def(graph_def, name="")
  return copy
