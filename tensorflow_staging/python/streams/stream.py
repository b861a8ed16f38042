# SPDX-License-Identifier: Apache-2.0
"""`tf.stream` and `Graph.stream`: scopes that choose a GPU stream for the ops that are created in them."""

import contextlib
import operator
from collections.abc import Iterator

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.stages import argument_checks


@tf_export("stream")
def stream(stream_idx: int = 0) -> contextlib.AbstractContextManager[None]:
  """Returns a context manager whose ops run on one stream of their GPU.

  Kernels on different streams of a GPU can run at the same time. A session has several streams on
  each GPU if its configuration says so:

  ```python
  import tensorflow as tf
  from tensorflow.core.protobuf import rewriter_config_pb2

  with tf.Graph().as_default():
    with tf.stream(0):
      a = tf.constant([1., 2.])
      with tf.stream(1):
        b = tf.constant([3., 4.]) * 2.  # on stream 1
      c = a + 1.  # on stream 0
    with tf.compat.v1.colocate_with(b):
      d = tf.constant([5., 6.])  # on the stream of b

    config = tf.compat.v1.ConfigProto()
    rewrite_options = config.graph_options.rewrite_options
    rewrite_options.use_multi_stream = rewriter_config_pb2.RewriterConfig.ON
    rewrite_options.multi_stream_opts.multi_stream_num = 2
    with tf.compat.v1.Session(config=config) as sess:
      print(sess.run([c, d]))
  ```

  Scopes nest; the innermost one applies. An op outside of all scopes runs on stream 0. So do
  gradients, unless they are computed in a scope. Which GPU an op runs on is decided as without
  streams. Ops that must be on one device are on one stream: the ops of a variable on that of the
  variable, and those in `tf.colocate_with(op)` on that of `op`. TensorFlow copies each tensor that
  goes from one stream to another.

  A scope has no effect on ops on a CPU, nor in a session whose configuration does not turn on
  `use_multi_stream`. It has none on the ops of functions that are created in it, such as the branches
  of a `tf.cond` of version 2 of control flow: open a scope inside the function instead. A local session
  that turns on `use_multi_stream` raises `tf.errors.InvalidArgumentError` if its graph has an op in a
  scope with a number that is not less than `multi_stream_num`.

  Args:
    stream_idx: The number of the stream, at least 0. Stream 0 is that of the training step.

  Returns:
    A context manager for the default graph.

  Raises:
    TypeError: If `stream_idx` is not an integer.
    ValueError: If `stream_idx` is negative, or the call is made in eager mode.
    RuntimeError: When the context ends, if a scope that began in it has not ended.
  """
  if context.executing_eagerly():
    raise ValueError(
        "tf.stream chooses a stream for the ops of a graph that a session runs, but eager execution is on. Call"
        " it inside `with tf.Graph().as_default():`.")
  return graph_stream(ops.get_default_graph(), stream_idx)


def graph_stream(graph: ops.Graph, stream_idx: int = 0) -> contextlib.AbstractContextManager[None]:
  """Returns the context manager of `tf.stream` for `graph`; implements `Graph.stream`."""
  argument_checks.check_int("stream_idx", stream_idx, minimum=0)
  return _scope(graph, attr_value_pb2.AttrValue(i=operator.index(stream_idx)))


@contextlib.contextmanager
def _scope(graph: ops.Graph, number: attr_value_pb2.AttrValue) -> Iterator[None]:
  """Sets the number of a stream for the ops that are created meanwhile."""
  with graph._attr_scope({vocabulary.STREAM_ATTR: number}):
    yield
    # Another scope would be restored as the wrong one.
    if graph._attr_scope_map.get(vocabulary.STREAM_ATTR) is not number:
      raise RuntimeError("Scopes of tf.stream must end in the reverse order of their beginning.")
