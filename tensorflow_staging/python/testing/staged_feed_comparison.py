# SPDX-License-Identifier: Apache-2.0
"""Runs a random graph with stages and without them, and compares what each run fetches."""

from __future__ import annotations

import collections
from typing import Any

import tensorflow as tf

from tensorflow_staging.python.testing import needed_ops
from tensorflow_staging.python.testing import staged_feed_graphs

# Runs of one graph.
_RUNS = 6
# Much longer than any run takes.
_MILLIS = 30000


class DifferenceError(Exception):
  """A run gives something else with stages than without."""


def compare(seed: int) -> collections.Counter:
  """Compares the runs of one seed.

  A run of the graph with stages may be refused, with an error that names what is fed, if a record that it uses was
  computed from that. The graph without stages does not run it then.

  Where a run only waits for an element, TensorFlow's optimizer may drop that, so that the next run gets the element.
  Such a run has no one answer without stages either: the comparison of its seed ends there.

  Args:
    seed: The graph's seed.

  Returns:
    How many runs there were, how many of them were fed and refused, and how many had no one answer.

  Raises:
    DifferenceError: If a run fetched other values than without stages, or failed without such a reason.
  """
  staged, plain = (staged_feed_graphs.make(seed, with_stages) for with_stages in (True, False))
  counts = collections.Counter(graphs=1)
  with _session(staged, smart_stage=seed % 3 == 0) as one, tf.make_prefetch_hook().running(one):
    with _session(plain) as other, _session(plain, optimizes=False) as unoptimized:
      for number, run in enumerate(staged_feed_graphs.random_runs(seed, plain, _RUNS)):
        counts.update(runs=1, fed=bool(run.feeds))
        try:
          got = _values_or_none(run, staged, one, plain)
          if got is None:
            counts.update(refused=1)
            continue
          wanted = _values(run, plain, other)
          if wanted != _values(run, plain, unoptimized):
            counts.update(ambiguous=1)
            break
          if got != wanted:
            raise DifferenceError(f"got {got}, without stages {wanted}")
        except DifferenceError as difference:
          raise DifferenceError(f"seed {seed}, run {number}: {run}: {difference}") from None
  return counts


def _session(graph: staged_feed_graphs.FeedGraph, smart_stage: bool = False, optimizes: bool = True) -> tf.Session:
  config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
  config.graph_options.optimizer_options.do_smart_stage = smart_stage
  config.graph_options.rewrite_options.disable_meta_optimizer = not optimizes
  sess = tf.Session(graph=graph.graph, config=config)
  sess.run(graph.initializers)
  return sess


def _values_or_none(
    run: staged_feed_graphs.Run, staged: staged_feed_graphs.FeedGraph, sess: tf.Session,
    plain: staged_feed_graphs.FeedGraph) -> list[Any] | None:
  """Returns what a run of the graph with stages gives, or None if it is refused for a reason."""
  try:
    return _values(run, staged, sess)
  except tf.errors.OpError as error:
    _check_refusal(run, staged, plain, error)
    return None


def _values(run: staged_feed_graphs.Run, graph: staged_feed_graphs.FeedGraph, sess: tf.Session) -> list[Any]:
  feeds = {
      graph.tensors[key]: sess.run(graph.other_handle) if value == "other" else value
      for key, value in run.feeds.items()
  }
  fetches = [graph.tensors[key] for key in run.fetches]
  return [value.item() if hasattr(value, "item") else value
          for value in sess.run(fetches, feeds, tf.RunOptions(timeout_in_ms=_MILLIS))]


def _check_refusal(
    run: staged_feed_graphs.Run, staged: staged_feed_graphs.FeedGraph, plain: staged_feed_graphs.FeedGraph,
    error: tf.errors.OpError) -> None:
  """Checks that a refusal names what is fed, and that a record which the run needs depends on that."""
  text = f"{type(error).__name__}: {error.message}"
  fed = [key for key in run.feeds if f"Tensor '{staged.tensors[key].name}' is fed, but" in error.message]
  if not isinstance(error, tf.errors.InvalidArgumentError) or not fed or "stage '" not in error.message:
    raise DifferenceError(text)
  names = {plain.tensors[key].name for key in run.feeds}
  fetched = [plain.tensors[key] for key in run.fetches if key not in run.feeds]
  needed = needed_ops.of(fetched, names)
  for key in staged.staged:
    tensor = plain.tensors[key]
    if tensor.op in needed and tensor.name not in names:
      if any(used.name == plain.tensors[fed[0]].name for op in needed_ops.of([tensor], names) for used in op.inputs):
        return
  raise DifferenceError(f"refused although no record that it uses was computed from '{fed[0]}': {text}")
