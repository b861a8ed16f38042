# SPDX-License-Identifier: Apache-2.0
"""The graph of a report of `tf.staging.explain`."""

import dataclasses

# The side of a node that is in no stage; a node in a stage has the stage's index.
STEP = -1
SHARED = -2
CONTROL = -3


@dataclasses.dataclass(frozen=True)
class StagedGraph:
  """A graph and the side of each node, for pictures.

  Attributes:
    nodes: For each node its name, the type of its operation and its side: the index of a stage,
      `STEP`, `SHARED` for a node that depends on no source, or `CONTROL` for an op that starts
      and stops a manual stage.
    edges: For each edge the index of its source node, the output (-1 for control) and the index of
      its destination node.
  """
  nodes: tuple[tuple[str, str, int], ...]
  edges: tuple[tuple[int, int, int], ...]
