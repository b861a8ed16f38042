# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of iterators whose elements are read ahead.

The op that saves an iterator pauses the iterator's stages, and writes the elements of which records wait beside its
position; the op that restores it gives them back (core/sources). In a session, what they hold ends with the session's
run. Eager ops have no such end: it ends with the next step, when everything that a checkpoint has is saved or restored.
"""

import weakref
from collections.abc import Callable
from collections.abc import Sequence

from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.eager import context
from tensorflow.python.eager import execute
from tensorflow.python.framework import ops

# Whether a checkpoint holds stages.
is_held = False
# Weak references to what is to be done when that ends.
_after_restores = []
# The devices of the iterators that are read ahead.
_devices = set()


def end_holds(iterators: Sequence[iterator_ops.OwnedIterator] = ()) -> None:
  """Lets the stages go on whose iterators eager ops have made, saved or restored.

  Args:
    iterators: Those that are read ahead from here on.
  """
  global is_held
  is_held = False
  while _after_restores:
    after_restore = _after_restores.pop()()
    if after_restore is not None:
      after_restore()
  _devices.update(iterator._iterator_resource.device for iterator in iterators)  # pylint: disable=protected-access
  # Each device has its own.
  for device in _devices:
    with ops.device(device):
      execute.execute(b"StepEndHolds", 0, [], (), context.context())


def note_checkpoints(iterator: iterator_ops.OwnedIterator, after_restore: Callable[[], None]) -> None:
  """Notes when `tf.train.Checkpoint` saves or restores an iterator.

  Args:
    iterator: The iterator.
    after_restore: A method, called after it was restored, before its stage goes on. Its object is not kept alive.
  """
  # The iterator must not own a reference to itself: its end ends its stage.
  weak, kind = weakref.ref(iterator), type(iterator)
  after_restore = weakref.WeakMethod(after_restore)

  def serialize():
    global is_held
    is_held = True
    return kind._serialize_to_tensors(weak())  # pylint: disable=protected-access

  def restore(restored):
    global is_held
    is_held = True
    result = kind._restore_from_tensors(weak(), restored)  # pylint: disable=protected-access
    _after_restores.append(after_restore)
    return result

  iterator._serialize_to_tensors = serialize  # pylint: disable=protected-access
  iterator._restore_from_tensors = restore  # pylint: disable=protected-access
