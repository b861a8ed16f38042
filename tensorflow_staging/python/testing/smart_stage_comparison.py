# SPDX-License-Identifier: Apache-2.0
"""Runs a random graph with and without SmartStage, and compares every step."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import Union

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2

from tensorflow_staging.python.testing import graph_without_stages
from tensorflow_staging.python.testing import needed_ops
from tensorflow_staging.python.testing import random_graphs

# Much longer than any step takes. A step that takes longer counts as a difference.
_STEP_MILLIS = 30000
# An error that refuses a fetch or a feed contains one of these texts: SmartStage refuses only draws, and a step of a
# manual stage only feeds of what the stage uses.
_REFUSAL = "tf.train.mark_target_node"
_REFUSAL_OF_FEED = "Feed what tf.staged has returned"


class DifferenceError(Exception):
  """A graph gives another result with SmartStage than without."""


@dataclasses.dataclass
class Tally:
  """Counts what happened in the graphs."""

  graphs: int = 0
  steps: int = 0
  # Graphs in which SmartStage found a stage or was off, and those of them in which several sources shared a stage.
  staged: int = 0
  joined: int = 0
  # Graphs with manual stages.
  manual: int = 0
  # Graphs that reached the end of their data, graphs in which a step failed, and graphs that restarted their data.
  ended: int = 0
  failed: int = 0
  restarted: int = 0
  # Different fetches and feeds, summed over the graphs, and how many of them were refused.
  accesses: int = 0
  refused: int = 0

  def add(self, other: Tally) -> None:
    """Adds the counts of other graphs."""
    for field in dataclasses.fields(self):
      setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def compare(seed: int) -> Tally:
  """Runs the graph of one seed with and without SmartStage.

  Args:
    seed: The graph's seed.

  Returns:
    The tally of this graph.

  Raises:
    DifferenceError: If a step gave another result with SmartStage than without, or if running the graph failed.
  """
  case = random_graphs.make(seed)
  tally = Tally(graphs=1, accesses=len({name for step in case.steps for name in [*step.fetches, *step.feeds]}))
  try:
    staged, steps = _run_staged(case, tally)
    expected = _run_unstaged(case, steps)
    _compare_outcomes(case, steps, staged, expected)
  except DifferenceError as difference:
    raise DifferenceError(f"seed {seed}: {difference}") from difference
  except Exception as error:
    raise DifferenceError(f"seed {seed}: {type(error).__name__}: {error}") from error
  tally.steps = sum(outcome != _NO_STEP for outcome in staged)
  tally.ended = int(tf.errors.OutOfRangeError in staged)
  tally.failed = int(any(_is_error(end) and end is not tf.errors.OutOfRangeError for end in staged))
  tally.restarted = int(any(step.restart for step in steps))
  return tally


def config(smart_stage: bool, grappler: bool, capacity: int = 1) -> tf.ConfigProto:
  """Returns the configuration of one of the two sessions."""
  result = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
  if not grappler:
    # This turns off TensorFlow's other graph optimizations too.
    result.graph_options.optimizer_options.opt_level = -1
  result.graph_options.rewrite_options.disable_meta_optimizer = not grappler
  result.graph_options.rewrite_options.min_graph_nodes = -1
  result.graph_options.rewrite_options.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
  if smart_stage:
    return tf.staging.smart_stage_config(result, tf.SmartStageOptions(capacity=capacity))
  return result


# The outcome of a step that is not run, because the data has ended.
_NO_STEP = "no step"

# The outcome of each step: its values by name, the type of its error, or `_NO_STEP`.
Outcomes = list[Union[dict[str, Any], type[Exception], str]]


@contextlib.contextmanager
def _staged_session(case: random_graphs.RandomGraph) -> Iterator[tf.Session]:
  case.counters.reset()
  with case.graph.as_default():
    with tf.Session(config=config(case.smart_stage, case.grappler, case.capacity)) as sess:
      sess.run(case.initializers)
      with tf.make_prefetch_hook().running(sess):
        yield sess


def _run_unstaged(case: random_graphs.RandomGraph, steps: list[random_graphs.Step]) -> Outcomes:
  case.counters.reset()
  graph = graph_without_stages.without_stages(case.graph)
  with tf.Session(graph=graph, config=config(False, case.grappler)) as sess:
    sess.run([initializer.name for initializer in case.initializers])
    return _run(sess, steps, case.begins_all)


def _run_staged(
    case: random_graphs.RandomGraph, tally: Tally) -> tuple[Outcomes, list[random_graphs.Step]]:
  """Runs the steps with SmartStage, and returns their outcomes and the steps without the names that were refused."""
  steps = case.steps
  while True:
    try:
      outcomes, metadata = _run_allowed(case, steps)
      break
    except _RefusedError as refusal:
      names = _check_refusal(case, refusal.step, refusal.message)
      tally.refused += len(names)
      steps = [random_graphs.without_names(step, names) for step in steps]
      steps = [step for step in steps if step.fetches]
  _count_stages(case, metadata, tally)
  return outcomes, steps


def _run_allowed(
    case: random_graphs.RandomGraph, steps: list[random_graphs.Step]) -> tuple[Outcomes, tf.RunMetadata]:
  metadata = tf.RunMetadata()
  with _staged_session(case) as sess:
    return _run(sess, steps, case.begins_all, metadata), metadata


def _run(
    sess: tf.Session, steps: list[random_graphs.Step], begins_all: bool,
    metadata: tf.RunMetadata | None = None) -> Outcomes:
  """Runs the steps until one fails. After the end of the data, skips steps until one restarts all of the data."""
  outcomes: Outcomes = []
  for step in steps:
    ended = bool(outcomes) and outcomes[-1] in (_NO_STEP, tf.errors.OutOfRangeError)
    if step.restart and (begins_all or not ended):
      sess.run(step.restart, options=tf.RunOptions(timeout_in_ms=_STEP_MILLIS))
    elif ended:
      outcomes.append(_NO_STEP)
      continue
    outcomes.append(_outcome(sess, step, None if outcomes else metadata))
    if not isinstance(outcomes[-1], dict) and outcomes[-1] is not tf.errors.OutOfRangeError:
      break
  return outcomes


class _RefusedError(Exception):
  """SmartStage refused a fetch or a feed of a step."""

  def __init__(self, message: str, step: random_graphs.Step):
    super().__init__(message)
    self.message = message
    self.step = step


def _outcome(sess: tf.Session, step: random_graphs.Step, metadata: tf.RunMetadata | None = None):
  """Runs a step.

  Args:
    sess: The session.
    step: The step.
    metadata: Receives the graphs that the step ran, if given.

  Returns:
    The values by name, or the type of the error.

  Raises:
    _RefusedError: If SmartStage refused a fetch or a feed.
    DifferenceError: If the step did not end in time.
  """
  options = tf.RunOptions(timeout_in_ms=_STEP_MILLIS, output_partition_graphs=metadata is not None)
  try:
    return sess.run({name: name for name in step.fetches}, step.feeds, options, metadata)
  except tf.errors.OpError as error:
    if _REFUSAL in error.message or _REFUSAL_OF_FEED in error.message:
      raise _RefusedError(error.message, step) from error
    if isinstance(error, tf.errors.DeadlineExceededError):
      raise DifferenceError(f"a step did not end: {error.message}") from error
    return type(error)


def _check_refusal(case: random_graphs.RandomGraph, step: random_graphs.Step, message: str) -> list[str]:
  """Returns the fetches and feeds of a step that a refusal is about.

  Args:
    case: The graph.
    step: The step that was refused.
    message: The message of the refusal.

  Returns:
    The name of the fetch or of the feed that the message names.

  Raises:
    DifferenceError: If the refused step needs no draw. Then SmartStage should have allowed it.
  """
  fed = [name for name in step.feeds if f"'{name}' is fed" in message]
  if _REFUSAL_OF_FEED in message:
    if not fed or case.graph.as_graph_element(fed[0]).op not in needed_ops.manual_regions(case.graph):
      raise DifferenceError(f"refused, but no manual stage uses {fed}: {message}")
    return fed
  if not needed_ops.need_draw(case.graph, step.fetches):
    raise DifferenceError(f"refused, but {step.fetches} need nothing that is drawn: {message}")
  if fed:
    return fed
  refused = re.search(r"Tensor '([^']+):\d+' is computed ahead.* The run needs it for '([^']+)'\.", message, re.DOTALL)
  names = [name for name in step.fetches if refused and name == refused.group(2)]
  if not names or not needed_ops.need_draw(case.graph, names):
    raise DifferenceError(f"the refusal is not about a fetch that needs a draw: {message}")
  # The draw may be in a function, which TensorFlow has replaced by its nodes.
  drawn = refused.group(1)
  if needed_ops.has_op(case.graph, drawn) and not (
      needed_ops.need_draw(case.graph, [drawn]) and needed_ops.need_op(case.graph, names[0], drawn)):
    raise DifferenceError(f"the refusal does not name a draw that {names} need: {message}")
  return names


def _count_stages(case: random_graphs.RandomGraph, metadata: tf.RunMetadata, tally: Tally) -> None:
  """Updates the tally from the graphs that a step ran: which takes replace sources there."""
  ran = [node for graph in metadata.partition_graphs for node in graph.node]
  takes = [node for node in ran if node.op == "TensorBufferTake"]
  manual = _taken_types(case.graph.as_graph_def().node)
  staged = not case.smart_stage or any(
      manual.get(node.name) != types for node in takes for types in _taken_types([node]).values())
  tally.staged += staged
  tally.manual += bool(manual)
  sources = len(needed_ops.sources(case.graph)) - sum(node.op == "IteratorGetNext" for node in ran)
  tally.joined += staged and len(takes) < sources


def _taken_types(nodes: Iterable[tf.NodeDef]) -> dict[str, list[int]]:
  """Returns the types that each take among the nodes yields, by the name of the take."""
  return {node.name: list(node.attr["dtypes"].list.type) for node in nodes if node.op == "TensorBufferTake"}


def _compare_outcomes(
    case: random_graphs.RandomGraph, steps: list[random_graphs.Step], staged: Outcomes, expected: Outcomes) -> None:
  error_may_differ = needed_ops.error_may_differ(case.graph)
  for number, (got, wanted) in enumerate(zip(staged, expected)):
    if isinstance(got, dict) and isinstance(wanted, dict):
      for name in steps[number].fetches:
        if not same(got[name], wanted[name]):
          raise DifferenceError(f"step {number}, {name}: {got[name]!r}, without SmartStage {wanted[name]!r}")
    elif got is not wanted:
      if error_may_differ and _is_error(got) and _is_error(wanted):
        return
      raise DifferenceError(f"step {number}: {got}, without SmartStage {wanted}")
  if len(staged) != len(expected):
    raise DifferenceError(f"{len(staged)} steps, without SmartStage {len(expected)}")


def _is_error(outcome: Any) -> bool:
  return isinstance(outcome, type)


def same(value: Any, other: Any) -> bool:
  """Whether two fetched values have the same type, shape and bits."""
  if value is None or other is None:
    return value is other
  if type(value) is not type(other):
    return False
  one, two = np.asarray(value), np.asarray(other)
  if one.dtype != two.dtype or one.shape != two.shape:
    return False
  return one.tolist() == two.tolist() if one.dtype == object else one.tobytes() == two.tobytes()
