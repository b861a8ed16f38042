# SPDX-License-Identifier: Apache-2.0
"""The graph of a report of `tf.staging.explain`."""

import dataclasses

# The side of a node that is in no stage; a node in a stage has the stage's index.
STEP = -1
SHARED = -2
CONTROL = -3
ONCE = -4

# What a reason is about, if it is no other node.
NOTHING = -1
ITSELF = -2


@dataclasses.dataclass(frozen=True)
class Why:
  """A reason that some nodes have in common.

  Attributes:
    text: The reason, as the predicate of a sentence whose subject is the node.
    about: The index of the node that the reason is about, `ITSELF` for the node that has the reason,
      or `NOTHING`.
    advice: What a user may do so that the reason no longer holds; empty if `about` is `NOTHING`.
  """
  text: str
  about: int
  advice: str


@dataclasses.dataclass(frozen=True)
class StagedGraph:
  """A graph, the side of each node, and why nodes are in no stage.

  Attributes:
    nodes: For each node its name, the type of its operation and its side: the index of a stage,
      `STEP`, `SHARED` for a node that depends on no source, `CONTROL` for an op that starts and
      stops a manual stage, or `ONCE` for a node that does its work before the first step.
    edges: For each edge the index of its source node, the output (-1 for control) and the index of
      its destination node.
    whys: The reasons.
    why_of: For each node the index of its reason in `whys`; -1 for a node in a stage.
    step_only: The indices of the nodes that stay in the step whatever they depend on. The reason of
      such a node may still be about another node.
  """
  nodes: tuple[tuple[str, str, int], ...]
  edges: tuple[tuple[int, int, int], ...]
  whys: tuple[Why, ...]
  why_of: tuple[int, ...]
  step_only: frozenset[int]

  def count(self, side: int) -> int:
    """Returns how many nodes are on a side."""
    return sum(found == side for _, _, found in self.nodes)
