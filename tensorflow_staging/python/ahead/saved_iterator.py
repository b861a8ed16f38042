# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of iterators whose elements are read ahead.

The op that saves an iterator pauses the iterator's stages, and writes the records that wait beside its position; the
op that restores it gives them back (core/sources). In a session, what they hold ends with the session's run. Eager ops
have no such end: it ends with the next step, when everything that a checkpoint has is saved or restored.
"""

import weakref
from collections.abc import Sequence

from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.eager import context
from tensorflow.python.eager import execute
from tensorflow.python.framework import ops
from tensorflow.python.platform import tf_logging

# Whether a checkpoint holds stages.
is_held = False
# The devices of the iterators that are read ahead.
_devices = set()


def end_holds(iterators: Sequence[iterator_ops.OwnedIterator] = ()) -> None:
  """Lets the stages go on whose iterators eager ops have made, saved or restored.

  Args:
    iterators: Those that are read ahead from here on.
  """
  global is_held
  is_held = False
  _devices.update(iterator._iterator_resource.device for iterator in iterators)  # pylint: disable=protected-access
  # Each device has its own.
  for device in _devices:
    with ops.device(device):
      execute.execute(b"StepEndHolds", 0, [], (), context.context())


def note_checkpoints(iterator: iterator_ops.OwnedIterator, draws_ahead: bool) -> None:
  """Notes when `tf.train.Checkpoint` saves or restores an iterator.

  Args:
    iterator: The iterator.
    draws_ahead: Whether the records hold random numbers of a generator, which were drawn from a copy of its state. A
      checkpoint has no such copy.
  """
  # The iterator must not own a reference to itself: its end ends its stage.
  weak, kind = weakref.ref(iterator), type(iterator)

  def serialize():
    global is_held
    if draws_ahead:
      tf_logging.warning(
          "A checkpoint of an iterator has records for which tf.random.Generator has drawn ahead. After it is restored,"
          " the generator repeats the draws of the records that waited.")
    is_held = True
    return kind._serialize_to_tensors(weak())  # pylint: disable=protected-access

  def restore(restored):
    global is_held
    is_held = True
    return kind._restore_from_tensors(weak(), restored)  # pylint: disable=protected-access

  iterator._serialize_to_tensors = serialize  # pylint: disable=protected-access
  iterator._restore_from_tensors = restore  # pylint: disable=protected-access
