# SPDX-License-Identifier: Apache-2.0
"""What `tf.staging.explain` returns."""

import dataclasses
import os

from tensorflow.python.framework import dtypes
from tensorflow.python.framework import tensor_shape

from tensorflow_staging.python.explain import explain_graph
from tensorflow_staging.python.explain import explain_picture
from tensorflow_staging.python.explain import explain_text


@dataclasses.dataclass(frozen=True)
class BoundaryTensor:
  """A tensor of the record that a stage hands to the step.

  Attributes:
    name: The tensor's name.
    dtype: Its type.
    shape: Its shape, as far as it is known before anything runs.
  """
  name: str
  dtype: dtypes.DType
  shape: tensor_shape.TensorShape

  @property
  def min_bytes(self) -> int | None:
    """How many bytes one record has of it, an unknown dimension counted as 1.

    None for strings, variants and resources, and without a known rank.
    """
    if self.shape.rank is None or not self.dtype.is_numpy_compatible or self.dtype in (
        dtypes.string, dtypes.resource, dtypes.variant):
      return None
    count = 1
    for dim in self.shape.as_list():
      count *= 1 if dim is None else dim
    return count * self.dtype.size

  @property
  def is_exact(self) -> bool:
    """Whether every record has just `min_bytes` of it."""
    return self.min_bytes is not None and self.shape.is_fully_defined()


@dataclasses.dataclass(frozen=True)
class OutsideNode:
  """A node that does not run ahead.

  Attributes:
    name: The node's name.
    op: The type of its operation.
    why: Why not, as the end of a sentence that begins with the node.
  """
  name: str
  op: str
  why: str

  def __str__(self) -> str:
    return f"'{self.name}' ({self.op}) {self.why}"


@dataclasses.dataclass(frozen=True)
class Stage:
  """A part of the graph that runs ahead of the step.

  Attributes:
    name: The name of the stage, in logs, errors and names of nodes.
    by_hand: Whether `tf.staged` made it.
    sources: The names of the nodes that yield records; of a stage by hand, the node that takes
      from its buffer.
    nodes: The names of the nodes that SmartStage has run ahead, each after its inputs. Empty for
      a stage by hand to which nothing is added.
    boundary: The tensors of a record.
    outside: The nodes of the step that use the stage: the first ones that stay out.
  """
  name: str
  by_hand: bool
  sources: tuple[str, ...]
  nodes: tuple[str, ...]
  boundary: tuple[BoundaryTensor, ...]
  outside: tuple[OutsideNode, ...]


@dataclasses.dataclass(frozen=True)
class Reason:
  """Why some nodes are in no stage.

  Attributes:
    nodes: How many they are.
    example: The first of them.
  """
  nodes: int
  example: OutsideNode


@dataclasses.dataclass(frozen=True)
class StageReport:
  """Which part of a graph runs ahead of the step; as a string, readable text.

  Attributes:
    enabled: Whether the configuration has SmartStage on. If not, the rest says what would be if
      it were.
    num_nodes: The number of nodes of the graph.
    stages: All stages, by name.
    unstaged_sources: What yields records and is in no stage, with the reason.
    reasons: Why the nodes outside of all stages are there, the most frequent reason first.
    graph: The graph.
  """
  enabled: bool
  num_nodes: int
  stages: tuple[Stage, ...]
  unstaged_sources: tuple[OutsideNode, ...]
  reasons: tuple[Reason, ...]
  graph: explain_graph.StagedGraph = dataclasses.field(repr=False)

  def __str__(self) -> str:
    return explain_text.text(self)

  def to_dot(self) -> str:
    """Draws the graph, stages and step apart, in Graphviz's language.

    A large graph is grouped by name scope, so that the picture stays readable.

    Returns:
      The source text of a picture.
    """
    return explain_picture.dot(self)

  def save_svg(self, path: str | os.PathLike) -> None:
    """Draws the graph into a file, with Graphviz's program `dot`.

    Args:
      path: The file, SVG; it is overwritten.

    Raises:
      RuntimeError: If `dot` is not installed, or fails.
      OSError: If the file cannot be written.
    """
    explain_picture.save_svg(self.to_dot(), path)
