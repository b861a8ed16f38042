# SPDX-License-Identifier: Apache-2.0
"""Ends the threads of datasets while Python can still run the functions that these threads call.

`iter(dataset)` reads ahead by itself: it adds a prefetch to most datasets. A thread that is in a Python function when
the interpreter ends never comes back from there, and the destructor of the iterator waits for it for ever.
"""

import threading
import time
from collections.abc import Sequence

from tensorflow.python.data.ops import iterator_ops
from tensorflow.python.framework import errors
from tensorflow.python.framework import ops
from tensorflow.python.ops import gen_dataset_ops

from tensorflow_staging.python.ahead import strategy_iterators

# As long as the threads of stages have: a function may never return.
_PATIENCE_SECONDS = 1.5


def end_iterators(iterators: Sequence[iterator_ops.OwnedIterator]) -> None:
  """Takes their data from iterators, whose threads end with the calls that they are in.

  Waits 1.5 seconds at most.

  Args:
    iterators: The iterators. Afterwards they are at the end of their data.
  """
  deadline = time.monotonic() + _PATIENCE_SECONDS
  # Daemons do not keep the program alive, so a function that does not return in time does not either.
  threads = [
      threading.Thread(target=_end_iterator, args=[iterator], name="staging_end_iterator", daemon=True)
      for iterator in iterators]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(max(0, deadline - time.monotonic()))


def _end_iterator(iterator: iterator_ops.OwnedIterator) -> None:
  """Gives an iterator a dataset without elements; the op returns when the threads of its old one have ended."""
  # pylint: disable=protected-access
  dataset = getattr(iterator, "_dataset", None)
  if dataset is None:
    return  # It was not made from a dataset in this process.
  try:
    with ops.device("CPU:0"):
      nothing = gen_dataset_ops.take_dataset(
          dataset._variant_tensor, 0, output_types=iterator._flat_output_types,
          output_shapes=iterator._flat_output_shapes)
      queue = strategy_iterators.queue_of(iterator)
      if queue is not None:
        gen_dataset_ops.multi_device_iterator_init(nothing, queue, max_buffer_size=1)
      gen_dataset_ops.make_iterator(nothing, iterator._iterator_resource)
  except errors.OpError:
    pass  # The program ends either way.
