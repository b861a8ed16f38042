# SPDX-License-Identifier: Apache-2.0
"""The workers of a `MultiWorkerMirroredStrategy`, as far as they have to agree on backups."""

from typing import Any

from tensorflow.python.distribute import collective_all_reduce_strategy
from tensorflow.python.distribute import reduce_util
from tensorflow.python.framework import constant_op
from tensorflow.python.framework import dtypes


class WorkerGroup:
  """The processes that train one model together.

  Attributes:
    number: How many they are.
    index: Which of them this one is.
  """

  def __init__(self, strategy: Any):
    """Finds the workers of a strategy; of most strategies, this process is the only one."""
    self._strategy = strategy
    self.number, self.index = 1, 0
    if isinstance(strategy, collective_all_reduce_strategy.CollectiveAllReduceStrategy):
      # pylint: disable=protected-access
      self.number, self.index = strategy.extended._num_workers, strategy.extended._id_in_cluster

  def gather(self, value: int) -> list[int]:
    """Returns the values of all workers. Each waits here until all have got here."""
    values = [0] * self.number
    values[self.index] = value
    total = self._strategy.reduce(reduce_util.ReduceOp.SUM, constant_op.constant(values, dtypes.int64), axis=None)
    return total.numpy().tolist()
