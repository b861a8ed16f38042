# SPDX-License-Identifier: Apache-2.0
"""SmartStage does not change the results of random graphs on a machine whose default device is a GPU."""

import re
import time

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import random_graphs
from tensorflow_staging.python.testing import smart_stage_comparison as comparison

_SECONDS = 40
_MOST_GRAPHS = 400
_FIRST_SEED = 1_000_000
# A CPU and a GPU draw different numbers. The other random ops give the same values on both.
_DRAWS = re.compile("(Random|Truncated|Multinomial|ParameterizedTruncated)")


def _comparable(case: random_graphs.RandomGraph, on_cpu: bool) -> bool:
  """Whether a graph must give the same bits with and without SmartStage.

  Sums on a GPU have no fixed order, so results must be exact; those of graphs that Grappler may change are. With
  `stage_subgraph_on_cpu`, ops of the region run on another device than without SmartStage.
  """
  draws = any(_DRAWS.match(op.type) for op in case.graph.get_operations())
  return case.grappler and not (on_cpu and draws)


@pytest.mark.parametrize("on_cpu", [False, True], ids=["", "stage_subgraph_on_cpu"])
def test_random_graphs(device, monkeypatch, on_cpu, record_property):
  plain = comparison.config

  def config(smart_stage: bool, *arguments) -> tf.ConfigProto:
    result = plain(smart_stage, *arguments)
    result.graph_options.optimizer_options.stage_subgraph_on_cpu = on_cpu
    return result

  monkeypatch.setattr(comparison, "config", config)
  tally = comparison.Tally()
  end = time.monotonic() + _SECONDS
  for seed in range(_FIRST_SEED, _FIRST_SEED + _MOST_GRAPHS):
    if time.monotonic() > end:
      break
    if _comparable(random_graphs.make(seed), on_cpu):
      tally.add(comparison.compare(seed))
  record_property("graphs", tally.graphs)
  record_property("with a stage", tally.staged)
  record_property("steps", tally.steps)
  assert tally.staged > 0.7 * tally.graphs > 0, tally
