# SPDX-License-Identifier: Apache-2.0
"""Finds out which stages of a session take the records of which others."""

import collections

from tensorflow.python.client import session as session_lib

from tensorflow_staging.python import messages
from tensorflow_staging.python.pywrap import _pywrap_staging
from tensorflow_staging.python.stages import stage_graph


def stages_before(session: session_lib.BaseSession) -> dict[str, set[str]]:
  """Returns, for each stage of `tf.staged`, the stages whose records its runs take.

  Args:
    session: The session of the stages.

  Returns:
    Maps the name of a stage to those of the stages directly before it. Empty if the graph has fewer than two
    stages, which can form no chain.
  """
  stages = [
      messages.PrefetchRunnerOptions.FromString(runner)
      for runner in session.graph.get_collection(stage_graph.RUNNERS_COLLECTION)
  ]
  if len(stages) < 2:
    return {}
  before = collections.defaultdict(set)
  found = _pywrap_staging.stages_before(session._session, [_ops_of(stage) for stage in stages])
  for stage, indices in zip(stages, found):
    before[stage.name].update(stages[i].name for i in indices)
  return before


def _ops_of(stage: messages.PrefetchRunnerOptions) -> list[str]:
  """Returns the names of what a stage runs: its Puts, and the ops whose values it feeds."""
  fed = (tensor.split(":")[0] for tensor in stage.named_feed_input_tensors.values())
  return list(dict.fromkeys([*stage.fetch_ops, *fed]))
