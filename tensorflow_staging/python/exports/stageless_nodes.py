# SPDX-License-Identifier: Apache-2.0
"""Connects regions to the step directly: rewrites the nodes of a graph, or of a function, without the ops of stages.

Each node that a program can name keeps its name and its outputs:

  node                          becomes
  the take of a stage           an identity of placeholders whose default is what its put would have stored
  the take of a join            an identity of placeholders, because nobody says which source's turn it is
  the size of a buffer          0
  the statistics of a buffer    an empty message
  any other op of a stage       nothing; nobody waits for it

The placeholders with a default keep TensorFlow's optimizers from looking through them: these would replace a tensor
that is fed by the constant that it is otherwise.
"""

import collections
import graphlib
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Optional

from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import tensor_shape_pb2
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import tensor_util

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.exports import fed_regions
from tensorflow_staging.python.exports import node_names

_ATTR_PREFIX = "_staging_"
# TensorFlow has no placeholders with a default for them, and no constants.
_HANDLE_TYPES = (dtypes.resource.as_datatype_enum, dtypes.variant.as_datatype_enum)
_ATTRS_KEPT_BY_TAKES = ("_class", "_output_shapes")
_OPS_WITH_OUTPUTS = (vocabulary.TAKE_OP, vocabulary.SIZE_OP, vocabulary.STATS_OP, vocabulary.DISCARD_OP)
_REMOVED_OPS = (vocabulary.PUT_OP, vocabulary.CANCEL_OP, vocabulary.RESUME_OP, vocabulary.CLOSE_OP)
_STAGE_OPS = frozenset((*_OPS_WITH_OUTPUTS, *_REMOVED_OPS))
# Only the graph that a session has made for itself has other ops of a stage.
_SESSION_OPS = frozenset((*vocabulary.BUFFER_OPS, "StagedNode")) - _STAGE_OPS


def has_stages(nodes: Iterable[node_def_pb2.NodeDef]) -> bool:
  """Returns whether any node is an op of a stage, or has an attribute of this package."""
  return any(node.op in _STAGE_OPS or node.op in _SESSION_OPS or _our_attrs(node) for node in nodes)


def is_removed(node: node_def_pb2.NodeDef) -> bool:
  """Returns whether a graph without stages has nothing in place of a node."""
  return node.op in _REMOVED_OPS


def without_stages(
    nodes: Sequence[node_def_pb2.NodeDef], feeds: Mapping[str, Mapping[str, str]],
    in_function: bool = False) -> list[node_def_pb2.NodeDef]:
  """Rewrites nodes without the ops of stages.

  Args:
    nodes: All nodes of a graph, or of the body of a function.
    feeds: What each stage feeds: for the name of a stage, the names of the tensors that yield the values, by those of
      the tensors that are fed. Empty for a function.
    in_function: Whether the inputs of the nodes have the names that they have in functions.

  Returns:
    New nodes, in the same order; copies and placeholders stand before the take that needs them.

  Raises:
    ValueError: If the take of a stage has no put, or one of other types, or if a stage takes its own records.
  """
  rewrite = _Rewrite(nodes, feeds, in_function)
  return rewrite.nodes()


class _Rewrite:
  """The rewrite of one graph or function."""

  def __init__(self, nodes, feeds, in_function):
    self._nodes = nodes
    self._by_name = {node.name: node for node in nodes}
    if len(self._by_name) < len(nodes):
      repeated = [name for name, count in collections.Counter(node.name for node in nodes).items() if count > 1]
      raise ValueError(f"The graph has several nodes of one name: {sorted(repeated)}.")
    self._feeds = feeds
    self._in_function = in_function
    self._puts = collections.defaultdict(list)
    for node in nodes:
      if node.op == vocabulary.PUT_OP:
        self._puts[_buffer_of(node)].append(node)
    removed = {node.name for node in nodes if node.op in _REMOVED_OPS}
    self._removed = removed | _constants_for(removed, nodes)

  def nodes(self) -> list[node_def_pb2.NodeDef]:
    for node in self._nodes:
      if node.op in _SESSION_OPS:
        raise ValueError(
            f"Node {node.name!r} is of type {node.op}, which only the graph has that a session has divided into stages:"
            " give this function the graph of the program.")
    self._check_order()
    result = []
    for node in self._nodes:
      if node.name not in self._removed:
        result += self._rewritten(node)
    names = {node.name for node in result}
    if len(names) < len(result):
      repeated = [name for name, count in collections.Counter(node.name for node in result).items() if count > 1]
      raise ValueError(f"The graph has nodes whose names its stages need: {sorted(repeated)}. Rename them.")
    for node in result:
      node.input[:] = [name for name in node.input if not self._waits_for_removed(name)]
      node_names.keep_colocation(node, names.__contains__)
    return result

  def _rewritten(self, node) -> list[node_def_pb2.NodeDef]:
    if node.op == vocabulary.TAKE_OP:
      return self._identity_of_record(node)
    new = node_def_pb2.NodeDef()
    new.CopyFrom(node)
    for name in _our_attrs(new):
      del new.attr[name]
    if node.op in (vocabulary.SIZE_OP, vocabulary.DISCARD_OP):
      return [_constant(new, 0, dtypes.int64)]
    if node.op == vocabulary.STATS_OP:
      return [_constant(new, b"", dtypes.string)]
    new.input[:] = [self._renamed(name) for name in new.input]
    return [new]

  def _identity_of_record(self, take) -> list[node_def_pb2.NodeDef]:
    puts = self._puts_of(take)
    if len(puts) == 1:
      region = fed_regions.FedRegion(_stage_of(take), self._feeds.get(_stage_of(take), {}), self._by_name)
      inputs, copies = region.copy_before(puts[0])
      before = [new for copy in copies for new in self._rewritten(copy)]
    else:
      inputs, before = [None] * len(take.attr["dtypes"].list.type), []
    values = [self._renamed(name) for name in inputs if name is None or not node_names.is_control(name)]
    control = [name for name in (*take.input, *inputs) if name is not None and node_names.is_control(name)]
    identity = node_def_pb2.NodeDef(name=take.name, op="IdentityN", device=take.device)
    for name in _ATTRS_KEPT_BY_TAKES:
      if name in take.attr:
        identity.attr[name].CopyFrom(take.attr[name])
    identity.attr["T"].list.type[:] = take.attr["dtypes"].list.type
    for i, (value, dtype) in enumerate(zip(values, take.attr["dtypes"].list.type)):
      if value is None or dtype not in _HANDLE_TYPES:
        placeholder = _placeholder(take, i, value)
        before.append(placeholder)
        value = _output(placeholder.name, "output", 0) if self._in_function else placeholder.name
      identity.input.append(value)
    identity.input.extend(dict.fromkeys(control))
    return [*before, identity]

  def _puts_of(self, take) -> list[node_def_pb2.NodeDef]:
    puts = self._puts[_buffer_of(take)]
    # Copies of a stage in several scopes have buffers of one name, until TensorFlow imports them with their runners.
    puts = [put for put in puts if _scope(put) == _scope(take)] or puts
    stage = _stage_of(take)
    if not puts:
      raise ValueError(
          f"Stage {stage!r} has a take, {take.name!r}, but no put, so nothing says how its record is computed. A part"
          " of the graph that was cut out, or frozen, before has lost it: give this function the whole graph.")
    for put in puts:
      data = [name for name in put.input if not node_names.is_control(name)]
      if len(data) != len(put.attr["dtypes"].list.type):
        raise ValueError(f"Node {put.name!r} puts {_type_names(put)}, but has {len(data)} inputs: {data}.")
      if put.attr["dtypes"].list.type[:] != take.attr["dtypes"].list.type[:]:
        raise ValueError(
            f"Stage {stage!r} puts {_type_names(put)} with {put.name!r}, but takes {_type_names(take)} with"
            f" {take.name!r}.")
    return puts

  def _check_order(self) -> None:
    """Checks that no stage takes its own records, directly or through others."""
    stages_before = {
        take.name: {
            name for put in self._puts_of(take) for name in self._before(put)
            if self._by_name[name].op == vocabulary.TAKE_OP
        } for take in self._nodes if take.op == vocabulary.TAKE_OP
    }
    try:
      graphlib.TopologicalSorter(stages_before).prepare()
    except graphlib.CycleError as error:
      raise ValueError(f"Stages take their own records: {' <- '.join(error.args[1])}.") from error

  def _before(self, node) -> set[str]:
    """Returns the nodes that a node depends on; those before a take belong to another stage."""
    found = set()
    waiting = [node]
    while waiting:
      for name in waiting.pop().input:
        name = node_names.node_of(name)
        if name in self._by_name and name not in found:
          found.add(name)
          if self._by_name[name].op != vocabulary.TAKE_OP:
            waiting.append(self._by_name[name])
    return found

  def _waits_for_removed(self, name) -> bool:
    return node_names.is_control(name) and node_names.node_of(name) in self._removed

  def _renamed(self, name: Optional[str]) -> Optional[str]:
    """Returns the new name of an input in a function, where it contains the name of an op's output."""
    return renamed_output(name, self._by_name) if self._in_function and name is not None else name


def renamed_output(name: str, nodes: Mapping[str, node_def_pb2.NodeDef]) -> str:
  """Returns the name that an output of a function's node has without stages.

  Args:
    name: The name, as in `take:values:0`.
    nodes: The nodes with stages, by their names.
  """
  node, _, output = name.partition(":")
  op = nodes[node].op if node in nodes else None
  index = output.rpartition(":")[2]
  if not output or op not in _OPS_WITH_OUTPUTS:
    return name
  return _output(node, "output", int(index))


def _output(node: str, output: str, index: int) -> str:
  return f"{node}:{output}:{index}"


def _buffer_of(node: node_def_pb2.NodeDef) -> tuple[bytes, bytes]:
  return node.attr["container"].s, node.attr[vocabulary.SHARED_NAME_ATTR].s


def _scope(node: node_def_pb2.NodeDef) -> str:
  return node.name.rpartition("/")[0]


def _stage_of(node: node_def_pb2.NodeDef) -> str:
  return node.attr[vocabulary.SHARED_NAME_ATTR].s.decode(errors="replace")


def _type_names(node: node_def_pb2.NodeDef) -> list[str]:
  return [dtypes.as_dtype(enum).name for enum in node.attr["dtypes"].list.type]


def _our_attrs(node: node_def_pb2.NodeDef) -> list[str]:
  return [name for name in node.attr if name.startswith(_ATTR_PREFIX) or name == vocabulary.STREAM_ATTR]


def _constants_for(removed: set[str], nodes: Sequence[node_def_pb2.NodeDef]) -> set[str]:
  """Returns the constants that only removed nodes use, such as the error with which a buffer is closed."""
  users = collections.defaultdict(set)
  for node in nodes:
    for name in node.input:
      users[node_names.node_of(name)].add(node.name)
  return {
      node.name
      for node in nodes
      if node.op == "Const" and users[node.name] and users[node.name] <= removed and _has_scope_of(node, removed)
  }


def _has_scope_of(node: node_def_pb2.NodeDef, others: set[str]) -> bool:
  return any(name.rpartition("/")[0] == _scope(node) for name in others)


def _constant(node: node_def_pb2.NodeDef, value, dtype: dtypes.DType) -> node_def_pb2.NodeDef:
  kept = {name: node.attr[name] for name in _ATTRS_KEPT_BY_TAKES if name in node.attr}
  constant = node_def_pb2.NodeDef(name=node.name, op="Const", device=node.device, input=node.input)
  for name, attr in kept.items():
    constant.attr[name].CopyFrom(attr)
  constant.attr["dtype"].type = dtype.as_datatype_enum
  constant.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(value, dtype, shape=[]))
  return constant


def _placeholder(take: node_def_pb2.NodeDef, index: int, default: Optional[str]) -> node_def_pb2.NodeDef:
  """Returns a placeholder for a tensor of a record, with a default unless that is None."""
  shapes = take.attr["shapes"].list.shape
  shape = shapes[index] if index < len(shapes) else tensor_shape_pb2.TensorShapeProto(unknown_rank=True)
  placeholder = node_def_pb2.NodeDef(
      name=f"{take.name}/feed_{index}",
      op="Placeholder" if default is None else "PlaceholderWithDefault",
      device=take.device,
      input=[] if default is None else [default])
  placeholder.attr["dtype"].type = take.attr["dtypes"].list.type[index]
  placeholder.attr["shape"].shape.CopyFrom(shape)
  return placeholder
