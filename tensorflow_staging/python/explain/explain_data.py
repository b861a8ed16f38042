# SPDX-License-Identifier: Apache-2.0
"""The data of a report of `tf.staging.explain`, below the code that prints and draws it."""

import dataclasses
from typing import Optional

from tensorflow.python.framework import dtypes
from tensorflow.python.framework import tensor_shape

from tensorflow_staging.python.explain import explain_graph


@dataclasses.dataclass(frozen=True)
class BoundaryTensor:
  """A tensor that a stage's record carries to the step.

  Attributes:
    name: The tensor's name.
    dtype: Its type.
    shape: Its shape, as far as it is known before the graph runs.
  """
  name: str
  dtype: dtypes.DType
  shape: tensor_shape.TensorShape

  @property
  def min_bytes(self) -> Optional[int]:
    """The size of the tensor in one record, in bytes, if every unknown dimension is 1.

    None for strings, variants and resources, and for a tensor of unknown rank.
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
    """Whether the tensor takes exactly `min_bytes` in every record."""
    return self.min_bytes is not None and self.shape.is_fully_defined()


@dataclasses.dataclass(frozen=True)
class RecordPart:
  """The tensors of a record that wait for the step in one memory.

  Attributes:
    device: The full name of a GPU, or "host".
    tensors: The tensors. One that waits in the memory of several GPUs is in the part of each.
  """
  device: str
  tensors: tuple[BoundaryTensor, ...]


@dataclasses.dataclass(frozen=True)
class OutsideNode:
  """A node that does not run ahead of the step.

  Attributes:
    name: The node's name.
    op: The type of its operation.
    why: The reason, as the predicate of a sentence whose subject is the node.
  """
  name: str
  op: str
  why: str

  def __str__(self) -> str:
    return f"'{self.name}' ({self.op}) {self.why}"


@dataclasses.dataclass(frozen=True)
class StageIterator:
  """An iterator that a stage reads.

  Attributes:
    name: The name of the node that yields its handle.
    op: The type of that node's operation.
    other_readers: The names of the nodes outside the stage that may read it, too. An element that
      they get is in no record.
  """
  name: str
  op: str
  other_readers: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class ChangingState:
  """A variable or a table that a stage reads, and that the program may change while it trains.

  Records that wait when it changes were computed from its old value; `tf.staging.discard` lets them be made again.

  Attributes:
    name: The name of the node that stands for it.
    op: The type of that node's operation.
    changers: The names of the nodes outside the stage that may change it.
  """
  name: str
  op: str
  changers: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Stage:
  """A part of the graph that runs ahead of the step.

  Attributes:
    name: The name of the stage, in logs, errors and names of nodes.
    by_hand: Whether `tf.staged` or `tf.prefetch_join` made it.
    sources: The names of the stage's sources; for a manual stage, the name of the node that takes
      from its buffer.
    nodes: The names of the nodes that SmartStage runs ahead, each after its inputs. For a manual
      stage, these are the nodes by which SmartStage extends it.
    boundary: The tensors of a record that the step needs.
    elements: The elements of sources that a record also keeps, so that a step can fetch any tensor.
    outside: The first nodes outside the stage: the nodes of the step that use it.
    variables: The names of the variables in which the stage looks up rows ahead of the step; empty
      for a stage that reads no variable.
    stale_steps: Of how many steps these lookups may miss the updates; 0 for any other stage.
    iterators: The iterators that the stage reads, and who else reads them; empty for a stage of lookups.
    changing: The variables and tables that the stage reads and the program may change; empty for a
      stage of lookups.
    parts: In which memory the tensors of a record wait for the step; None if only the session knows that.
  """
  name: str
  by_hand: bool
  sources: tuple[str, ...]
  nodes: tuple[str, ...]
  boundary: tuple[BoundaryTensor, ...]
  elements: tuple[BoundaryTensor, ...]
  outside: tuple[OutsideNode, ...]
  variables: tuple[str, ...]
  stale_steps: int
  iterators: tuple[StageIterator, ...] = ()
  changing: tuple[ChangingState, ...] = ()
  parts: Optional[tuple[RecordPart, ...]] = ()


@dataclasses.dataclass(frozen=True)
class Reason:
  """A reason why nodes are in no stage.

  Nodes that depend on variables, for example, have one reason, whichever variables these are.

  Attributes:
    nodes: How many nodes have this reason.
    example: The first of them.
    about: The names of the nodes that the reason is about, such as the variables; the first one is
      that of `example`. Empty if the reason is about each node itself, or about no particular node.
  """
  nodes: int
  example: OutsideNode
  about: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Advice:
  """Nodes with one reason, each of which keeps other nodes in the step that nothing else keeps there.

  Attributes:
    node: The node that keeps most others, with its reason.
    nodes: How many nodes would run ahead at most if the reason held for none of them: those that are
      in the step because of one of them alone.
    advice: What to do about the reason, as a sentence.
    others: The names of the other nodes to which the same advice applies, such as further tables of
      embeddings, that which keeps most others first.
  """
  node: OutsideNode
  nodes: int
  advice: str
  others: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class ReportData:
  """The fields of a report; its subclass `StageReport` documents them for users.

  The text and the picture of a report need only this class, so the report can import both.
  """
  enabled: bool
  async_embedding: bool
  num_nodes: int
  stages: tuple[Stage, ...]
  unstaged_sources: tuple[OutsideNode, ...]
  reasons: tuple[Reason, ...]
  advice: tuple[Advice, ...]
  graph: explain_graph.StagedGraph = dataclasses.field(repr=False)
  notes: tuple[str, ...] = ()
