# SPDX-License-Identifier: Apache-2.0
"""A traced step as two functions of the eager context: one runs ahead, the other is the rest."""

import itertools
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import Optional

from tensorflow.core.framework import function_pb2
from tensorflow.core.framework import graph_debug_info_pb2
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.eager.polymorphic_function import concrete_function

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.ahead import changed_resources
from tensorflow_staging.python.ahead import function_library
from tensorflow_staging.python.ahead import host_functions
from tensorflow_staging.python.ahead import optional_reads
from tensorflow_staging.python.ahead import step_inputs
from tensorflow_staging.python.ahead import worker_reads
from tensorflow_staging.python.pywrap import _pywrap_staging

_STATEFUL_PYTHON_OPS = ("PyFunc", "EagerPyFunc")
_PYTHON_OPS = (*_STATEFUL_PYTHON_OPS, "PyFuncStateless")

_ASKS_IN_A_CALL = "a function that it calls reads the iterator, and asks the other workers there whether they have data"

_numbers = itertools.count()


class NotStagedError(Exception):
  """Nothing runs ahead; the message says why, as the end of a sentence."""


class _Part(atomic_function.AtomicFunction):
  """A part of a function, whose errors name the lines of the program that made the function."""

  __slots__ = ["_origin"]

  def __init__(self, name: str, origin: str, function_type: Any, children: list["atomic_function.AtomicFunction"]):
    super().__init__(name, context.context(), function_type, children)
    self._origin = origin

  @property
  def graph_debug_info(self) -> graph_debug_info_pb2.GraphDebugInfo:
    # Nodes keep their names.
    return self._bound_context.get_graph_debug_info(self._origin)


def divide(
    concrete: concrete_function.ConcreteFunction, inputs: Sequence[step_inputs.StepInput], python_ahead: bool = False,
    host: Optional[str] = None) -> "StepDivision":
  """Returns the division of a trace, the same one for all steps of `tf.staging.ahead` that call it.

  So draws whose state a kernel has go on from one `fit` to the next.

  Args:
    concrete: The trace.
    inputs: What its inputs stand for.
    python_ahead: Whether stateful Python functions may run ahead.
    host: As for `StepDivision`.

  Raises:
    NotStagedError: If nothing can run ahead.
  """
  # The trace owns them, and its end ends them. TensorFlow may keep its graph for ever.
  if not hasattr(concrete, "_staging_divisions"):
    concrete._staging_divisions = {}  # pylint: disable=protected-access
  divisions = concrete._staging_divisions  # pylint: disable=protected-access
  key = repr((inputs, python_ahead, host))
  if key not in divisions:
    try:
      divisions[key] = StepDivision(concrete, inputs, python_ahead, host)
    except NotStagedError as error:
      divisions[key] = str(error)
  if isinstance(divisions[key], str):
    raise NotStagedError(divisions[key])
  return divisions[key]


class StepDivision:
  """The two functions of one trace. They serve all iterators whose elements have its types and shapes.

  Attributes:
    concrete: The trace, which does not change.
    rest: Called as the trace is, with a buffer's handle in place of an iterator's.
    buffer_input: The index of the input that is the buffer's handle.
    ahead: The name of the function that puts a record into a buffer.
    iterators: The indices of the inputs that are iterators.
    ahead_inputs: The indices of those inputs of the trace that `ahead` takes, before the buffer's handle.
    random_states: The indices of states of random generators, of which `ahead` takes copies, with their types' names.
    record: What a record carries: a list of (name, type, shape).
    seeded_draw: The name of a node that draws with a seed of its own, or None. Its kernel has the state, and the trace
      and `rest` have kernels of their own.
    changes: The indices of the inputs that are variables or tables which the trace may change.
    is_needed: Whether the trace cannot run in place of `rest`, since its draws would begin anew, or since XLA may be
      unable to compile what `ahead` has of it.
    has_late_inputs: Whether there are inputs that each call evaluates.
    calls_python: Whether `ahead` calls Python functions.
    is_on_host: Whether nodes of `ahead` that a strategy has put on other devices are on the host.
    nodes_ahead: The names of the nodes that run ahead.
    outside: The first nodes that use them and are in the rest: a list of (name, op, reason).
    destinations: What each GPU gets of a record, once `rest` has run: a list of (device, indices in `record`).
    keeps_draws: Whether `rest` has drawn with seeds, so that the draws would begin anew in another function.
  """

  def __init__(
      self, concrete: concrete_function.ConcreteFunction, inputs: Sequence[step_inputs.StepInput],
      python_ahead: bool = False, host: Optional[str] = None):
    """Divides a trace.

    Args:
      concrete: The trace.
      inputs: What its inputs stand for.
      python_ahead: Whether stateful Python functions may run ahead.
      host: The host's device, if a strategy has put the nodes of each replica on a device: what runs ahead is on the
        host all the same. None if not.

    Raises:
      NotStagedError: If nothing can run ahead.
    """
    self.concrete = concrete
    name = concrete.name.decode() if isinstance(concrete.name, bytes) else concrete.name
    prefix = f"__inference_staged_{next(_numbers)}_"
    library = function_library.library_of(concrete.function_def)
    if not python_ahead:
      _keep_python_in_step(library, name)
    replaced = optional_reads.replace(library, name)
    if replaced.why_not:
      raise NotStagedError(replaced.why_not)
    seen = [given._replace(kind="other") if i in replaced.hidden else given for i, given in enumerate(inputs)]
    divided = _pywrap_staging.divide_step(library.SerializeToString(), name, [tuple(i) for i in seen], prefix)
    if divided["why_not"]:
      raise NotStagedError(divided["why_not"])
    self.iterators = frozenset(i for i, given in enumerate(inputs) if given.kind == "iterator")
    self.has_late_inputs = bool(concrete.graph.deferred_external_captures)
    self.changes = changed_resources.of_graph(concrete.graph)
    self.seeded_draw = seeded_draw(library)
    self.is_needed = self.seeded_draw is not None or any(f.attr["_XlaMustCompile"].b for f in library.function)
    self.ahead = divided["ahead"]
    self.ahead_inputs = divided["ahead_inputs"]
    self.buffer_input = divided["buffer_input"]
    self.random_states = divided["random_states"]
    self.record = divided["record"]
    self.nodes_ahead = divided["nodes_ahead"]
    self.outside = divided["outside"]
    self.destinations: Optional[list[tuple[str, list[int]]]] = None
    self.keeps_draws = False
    by_name = {function.signature.name: function for function in library.function}
    parts = [function_pb2.FunctionDef.FromString(serialized) for serialized in divided["functions"]]
    for function in parts:
      if not worker_reads.let_elements_wait(function):
        raise NotStagedError(_ASKS_IN_A_CALL)
      self.ahead_inputs += optional_reads.restore(function, divided["origins"][function.signature.name], replaced)
      by_name[function.signature.name] = function
    origins = divided["origins"]
    self.is_on_host = host is not None and host_functions.any_elsewhere(self.ahead, by_name)
    if self.is_on_host:
      for name, function in host_functions.on_host(self.ahead, by_name, f"{prefix}host_", host).items():
        parts.append(function)
        by_name[function.signature.name] = function
        origins[function.signature.name] = origins.get(name, name)
      self.ahead = f"{prefix}host_{self.ahead}"
    self.definition_ahead = _definition(self.ahead, by_name).replace(prefix, "")
    self.calls_python = any(op in _PYTHON_OPS for op in _ops(self.ahead, by_name))
    # An error names all functions that it went through, and each part may call the others.
    children = list(concrete._inference_function.children)  # pylint: disable=protected-access
    self._parts = {}
    for function in parts:
      context.context().add_function_def(function)
      part = function.signature.name
      self._parts[part] = _Part(part, origins[part], concrete.function_type, children)
    children.extend(self._parts.values())
    self.rest = self._parts[divided["rest"]]

  def keep_draws(self) -> None:
    """Notes that `rest` draws with seeds."""
    self.keeps_draws = True
    self.concrete.graph._staging_draws_in = self  # pylint: disable=protected-access


def that_keeps_draws(concrete: concrete_function.ConcreteFunction) -> Optional[StepDivision]:
  """Returns the division of a trace that has drawn with seeds, or None."""
  return getattr(concrete.graph, "_staging_draws_in", None)


def _keep_python_in_step(library: function_pb2.FunctionDefLibrary, name: str) -> None:
  """Marks the calls of stateful Python functions, except those that XLA, which cannot compile them, would meet.

  Such a function may read what the program changes, of which a graph shows nothing.
  """
  by_name = {function.signature.name: function for function in library.function}
  known, to_visit = {name}, [by_name[name]]
  while to_visit:
    for node in to_visit.pop().node_def:
      if node.op in _STATEFUL_PYTHON_OPS:
        node.attr[vocabulary.STAYS_IN_STEP_ATTR].b = True
      if node.attr["_XlaMustCompile"].b if "_XlaMustCompile" in node.attr else False:
        continue
      for callee in function_library.called_by(node):
        if callee not in known:
          known.add(callee)
          to_visit.append(by_name[callee])


def seeded_draw(library: function_pb2.FunctionDefLibrary) -> Optional[str]:
  """Returns the name of a node of a library that draws with a seed of its own, or None."""
  for function in library.function:
    for node in function.node_def:
      if any(node.attr[key].i for key in ("seed", "seed2") if key in node.attr):
        return node.name
  return None


def _definition(name: str, by_name: dict[str, function_pb2.FunctionDef]) -> str:
  """Returns a function with those that it calls as text, without what differs from trace to trace."""
  function = function_pb2.FunctionDef()
  function.CopyFrom(by_name[name])
  function.signature.name = ""
  function.attr.clear()
  called = []
  for node in function.node_def:
    node.ClearField("experimental_debug_info")
    called.extend(_definition(callee, by_name) for callee in function_library.called_by(node))
    for key, attr in list(node.attr.items()):
      if key.startswith("_") or attr.WhichOneof("value") == "func" or attr.list.func:
        del node.attr[key]
  return "".join([str(function), *called])


def _ops(name: str, by_name: dict[str, function_pb2.FunctionDef]) -> Iterator[str]:
  """Yields the ops of a function and of those that it calls."""
  for node in by_name[name].node_def:
    yield node.op
    for callee in function_library.called_by(node):
      yield from _ops(callee, by_name)
