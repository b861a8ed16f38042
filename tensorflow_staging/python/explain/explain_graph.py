# SPDX-License-Identifier: Apache-2.0
"""The graph of a report of `tf.staging.explain`."""

import dataclasses

# Where a node runs, besides the numbers of stages.
STEP = -1
SHARED = -2


@dataclasses.dataclass(frozen=True)
class StagedGraph:
  """A graph and where its nodes run, for pictures.

  Attributes:
    nodes: Of each node the name, the type of the operation and where it runs: the index of a
      stage, `STEP`, or `SHARED` for what depends on no source of records.
    edges: Of each edge the index of the node that it leaves, the output (-1 for control) and the
      index of the node that it enters.
  """
  nodes: tuple[tuple[str, str, int], ...]
  edges: tuple[tuple[int, int, int], ...]
