# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.save_iterators`: keeps positions in the data, and what was read ahead of the steps, in checkpoints."""

from collections.abc import Iterator

from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.data.ops import options as options_lib
from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python.checkpoints import iterator_saveable
from tensorflow_staging.python.stages import feed_generator

_POLICIES = {
    "fail": options_lib.ExternalStatePolicy.FAIL,
    "warn": options_lib.ExternalStatePolicy.WARN,
    "ignore": options_lib.ExternalStatePolicy.IGNORE,
}

# What a checkpoint can hold: `tf.data.Iterator`s and `tf.compat.v1.data.Iterator`s of graphs.
_ITERATOR_OPS = ("Iterator", "IteratorV2", "OneShotIterator")


@tf_export("staging.save_iterators")
def save_iterators(
    *iterators: iterator_ops.Iterator, external_state_policy: str = "fail") -> None:
  """Makes checkpoints hold positions in the data, so that training resumes with exactly the next element.

  Every `tf.compat.v1.train.Saver` without a `var_list` that is created later, and so those of
  `MonitoredTrainingSession` and Estimators, saves beside the variables the position of each iterator
  and the elements that were read ahead and that no step has used. A program that restores such a
  checkpoint goes on with the element after the last one that a step had used: none is lost, none comes
  twice. Its model and its stages may differ, and it may have no stage. Each iterator may be restored alone.

  For example:

  ```python
  import tempfile
  import tensorflow as tf

  with tf.Graph().as_default():
    dataset = tf.data.Dataset.range(100)
    iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
    record = tf.staged(iterator.get_next(), capacity=4)
    tf.staging.save_iterators(iterator)
    saver = tf.compat.v1.train.Saver()
    with tf.compat.v1.Session() as sess:
      sess.run(iterator.initializer)
      with tf.make_prefetch_hook().running(sess):
        print(sess.run(record), sess.run(record))  # 0 1
        path = saver.save(sess, tempfile.mkdtemp() + "/model")
        print(sess.run(record), sess.run(record))  # 2 3
        saver.restore(sess, path)
        print(sess.run(record))  # 2
  ```

  The stages go on while a checkpoint is written. The save of an iterator waits only for a read of it that is
  in progress. It fails with `tf.errors.InvalidArgumentError` if an element that was read ahead has a component
  without a serialized form, such as a dataset or a handle.

  After a restore, the stages make their records again from the elements, and draw random numbers anew. What
  a stage had read from anything but an iterator, such as a queue, is not saved.

  A session that restores an iterator initialises it first. In a monitored session, the position
  outlasts `local_init_op`, which initialises tables and with them the iterators of Estimators: until a step
  has used an element, the initialiser of the saved dataset gives the iterator the position again. An iterator
  whose initialiser needs feeds, or that has several, gets its position from that initialiser.

  Call this for training only: a graph that evaluates would restore the position of training, and leave out
  the data before it.

  Of several workers, each has iterators of its own, and the chief's checkpoint holds only the chief's.
  `tf.staging.WorkerCheckpointHook` saves those of another worker beside it.

  Args:
    *iterators: Iterators of the default graph. Without any, all that it has so far; what a `feed_generator`
      yields cannot be saved.
    external_state_policy: What happens if a dataset depends on state that cannot be saved, such as
      that of a Python function: `"fail"`, `"warn"` or `"ignore"`. The first raises
      `tf.errors.FailedPreconditionError` when the checkpoint is saved.

  Raises:
    TypeError: If an argument is not an iterator.
    ValueError: If an iterator belongs to another graph, cannot be saved, or is saved already with another
      policy, if the graph has no iterator, if `external_state_policy` is unknown, or if the call is made in eager mode.
  """
  if context.executing_eagerly():
    raise ValueError(
        "tf.staging.save_iterators adds to the checkpoints of a graph that a session runs, but eager"
        " execution is on. Call it inside `with tf.Graph().as_default():`.")
  if external_state_policy not in _POLICIES:
    raise ValueError(
        f"external_state_policy must be one of {sorted(_POLICIES)}, got {external_state_policy!r}.")
  graph = ops.get_default_graph()
  handles = [_handle(iterator, graph) for iterator in iterators] or list(_handles_of(graph))
  if not handles:
    raise ValueError(
        "The default graph has no iterator whose position can be saved. Call tf.staging.save_iterators after"
        " creating one; what a feed_generator yields cannot be saved.")
  policy = _POLICIES[external_state_policy]
  for handle in handles:
    saveables = graph.get_collection(ops.GraphKeys.SAVEABLE_OBJECTS)
    saveable = next((entry for entry in saveables if getattr(entry, "op", None) is handle), None)
    if saveable is None:
      iterator_saveable.add_to_graph(handle, policy)
    elif iterators and isinstance(saveable, iterator_saveable.IteratorSaveable) and saveable.policy() != policy:
      raise ValueError(
          f"The iterator '{handle.op.name}' is saved already, with external_state_policy="
          f"{saveable.policy().name.lower()!r}, so it cannot be {external_state_policy!r}. Give the policy in the"
          " first call.")


def _handle(iterator: iterator_ops.Iterator, graph: ops.Graph) -> tensor_lib.Tensor:
  """Returns the handle of an iterator, after checking it."""
  if not isinstance(iterator, iterator_ops.Iterator):
    raise TypeError(
        "tf.staging.save_iterators takes iterators, such as those of"
        f" tf.compat.v1.data.make_initializable_iterator; got {iterator!r} of type"
        f" {type(iterator).__name__}.")
  handle = iterator._iterator_resource  # pylint: disable=protected-access
  if handle.graph is not graph:
    raise ValueError(f"The iterator '{handle.op.name}' belongs to another graph than the default graph.")
  if handle.op.type not in _ITERATOR_OPS:
    raise ValueError(
        f"The position of '{handle.op.name}' cannot be saved: it is of type {handle.op.type}; allowed are"
        f" {', '.join(_ITERATOR_OPS)}.")
  return handle


def _handles_of(graph: ops.Graph) -> Iterator[tensor_lib.Tensor]:
  return (
      op.outputs[0] for op in graph.get_operations()
      if op.type in _ITERATOR_OPS and not feed_generator.yields_values(op))
