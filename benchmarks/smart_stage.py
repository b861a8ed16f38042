#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what the start costs with SmartStage, and the gain, for benchmarks/smart_stage.md.

`.venv/bin/python benchmarks/smart_stage.py > benchmarks/smart_stage.md` takes some minutes.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable
from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from lib import blocks
from lib import pass_graph
from lib import plain_command_line
from lib import report

# Sizes of graphs, without and with Grappler, which needs minutes for the largest ones.
_START_NODES = {False: (1_000, 14_000, 50_000, 200_000), True: (1_000, 14_000)}
# Small graphs need more rounds, because their start takes less time than the machine's speed stays the same.
_START_SECONDS = 30
_START_ROUNDS = (5, 41)

_ROUNDS = 9
_WARM_UP_STEPS = 20
_MEASURED_STEPS = 100
_BATCH = 256
_BATCHES = 8
_WORDS = 24
_BUCKETS = 20_000
_CAPACITY = 4

Record = dict[str, tf.Tensor]

# Arguments of tf.SmartStageOptions; None leaves SmartStage off.
Options = dict[str, int] | None


def _config(smart_stage: Options) -> tf.compat.v1.ConfigProto:
  config = tf.compat.v1.ConfigProto()
  if smart_stage is None:
    return config
  if smart_stage.get("use_stage_subgraph_thread_pool"):
    config.session_stage_subgraph_thread_pool.add(inter_op_threads_num=1, intra_op_threads_num=1)
  options = config.graph_options.optimizer_options
  options.do_smart_stage = True
  options.smart_stage_options.CopyFrom(tf.SmartStageOptions(capacity=_CAPACITY, **smart_stage))
  return config


def _first_step(graph: tf.Graph, smart_stage: Options, grappler: bool) -> float:
  """Returns the seconds from the creation of a session to the end of its first training step."""
  with graph.as_default():
    config = _config(smart_stage)
  config.graph_options.rewrite_options.disable_meta_optimizer = not grappler
  initializer, train = (graph.get_operation_by_name(name) for name in (pass_graph.INITIALIZER, pass_graph.TRAIN))
  began = time.perf_counter()
  with tf.compat.v1.Session(graph=graph, config=config) as session:
    session.run(initializer)
    with contextlib.nullcontext() if smart_stage is None else tf.make_prefetch_hook().running(session):
      session.run(train)
      return time.perf_counter() - began


def _start_row(nodes: int, grappler: bool) -> tuple[str, ...]:
  graph = pass_graph.make(nodes)
  ways = {
      "plain": lambda: _first_step(graph, None, grappler),
      "smart": lambda: _first_step(graph, {}, grappler),
      "explain": lambda: _seconds(lambda: tf.staging.explain(graph, _config({}))),
  }
  rounds: dict[str, list[float]] = {name: [] for name in ways}
  began = time.perf_counter()
  fewest, most = _START_ROUNDS
  for turn in range(most):
    if turn >= fewest and time.perf_counter() - began > _START_SECONDS:
      break
    for name, way in list(ways.items())[:: (-1) ** turn]:
      rounds[name].append(way())
  medians = {name: statistics.median(values) for name, values in rounds.items()}
  plain, smart = medians["plain"], medians["smart"]
  ratio = statistics.median(s / p for p, s in zip(rounds["plain"], rounds["smart"], strict=True))
  return (
      f"{nodes:,}", "on" if grappler else "off", f"{plain:.3f}", f"{smart:.3f}", f"{smart - plain:.3f}", f"{ratio:.2f}",
      f"{medians['explain']:.3f}")


def _seconds(run: Callable[[], object]) -> float:
  began = time.perf_counter()
  run()
  return time.perf_counter() - began


def _raw() -> tf.data.Dataset:
  """Returns an endless dataset of batches with columns like those of a log; the data is in memory."""
  numbers = np.random.RandomState(1)
  rows = _BATCH * _BATCHES
  lengths = numbers.randint(_WORDS // 2, _WORDS + 1, rows)
  columns = {
      "user": np.array([f"user{i}" for i in numbers.randint(0, 100_000, rows)]),
      "item": np.array([f"item{i}" for i in numbers.randint(0, 100_000, rows)]),
      "words": np.array([", ".join(f"W{i}" for i in numbers.randint(0, 5_000, n)) for n in lengths]),
      "price": numbers.rand(rows, 16).astype(np.float32),
      "click": numbers.randint(0, 2, rows).astype(np.float32),
  }
  return tf.data.Dataset.from_tensor_slices(columns).batch(_BATCH, drop_remainder=True).cache().repeat()


def _features(record: Record) -> Record:
  """Adds the work before the first variable: cleaning, splitting, padding, crossing, hashing, bucketizing."""
  text = tf.strings.regex_replace(tf.strings.lower(record["words"]), "[^a-z0-9 ]", "")
  words = tf.compat.v2.strings.split(text).to_tensor("", shape=[_BATCH, _WORDS])
  price = tf.raw_ops.Bucketize(input=record["price"], boundaries=[i / 64 for i in range(1, 64)])
  pair = tf.strings.join([record["user"], record["item"]], separator="_x_")
  crossed = tf.strings.join([tf.tile(tf.expand_dims(pair, 1), [1, _WORDS]), words], separator="_x_")
  keys = tf.concat([words, crossed, tf.stack([record["user"], record["item"], pair], axis=1)], axis=1)
  hashed = tf.strings.to_hash_bucket_strong(keys, _BUCKETS, [7, 11])
  return {"ids": tf.concat([hashed, tf.cast(price, tf.int64)], axis=1), "click": record["click"]}


def _train(features: Record) -> tuple[tf.Tensor, tf.Operation]:
  """Adds the model; returns its loss and its training op."""
  v1 = tf.compat.v1
  seed = iter(range(1, 9))

  def variable(name: str, shape: list[int]) -> tf.Tensor:
    return v1.get_variable(name, shape, initializer=tf.random_normal_initializer(stddev=0.1, seed=next(seed)))

  table = variable("table", [_BUCKETS, 8])
  width = features["ids"].shape[1] * 8
  hidden = tf.reshape(tf.nn.embedding_lookup(table, features["ids"]), [_BATCH, width])
  hidden = tf.nn.relu(tf.matmul(hidden, variable("hidden", [width, 64])))
  logits = tf.squeeze(tf.matmul(hidden, variable("output", [64, 1])), 1)
  loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=features["click"], logits=logits))
  return loss, v1.train.AdagradOptimizer(0.05).minimize(loss)


def _in_the_step() -> Record:
  return _features(tf.compat.v1.data.make_one_shot_iterator(_raw()).get_next())


def _in_the_dataset() -> Record:
  dataset = _raw().map(_features, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
  return tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()


_PLAIN = "`tf.data`, the work in the step"
_DATASET = "`tf.data`, the work in `map(AUTOTUNE)`, `prefetch(AUTOTUNE)`"
_SMART = "SmartStage, the work in the step"
_WAYS: dict[str, tuple[Callable[[], Record], Options]] = {
    _SMART: (_in_the_step, {}),
    f"{_SMART}, `num_threads=2`": (_in_the_step, dict(num_threads=2)),
    f"{_SMART}, on a stage thread pool of one thread": (_in_the_step, dict(use_stage_subgraph_thread_pool=True)),
    _DATASET: (_in_the_dataset, None),
    _PLAIN: (_in_the_step, None),
}


@contextlib.contextmanager
def _open(make_features: Callable[[], Record], smart_stage: Options) -> Iterator[Callable[[], float]]:
  """Opens a graph and a session; yields a function that runs a step and returns its loss."""
  with tf.Graph().as_default():
    fetches = _train(make_features())
    with tf.compat.v1.Session(config=_config(smart_stage)) as session:
      session.run(tf.compat.v1.global_variables_initializer())
      with tf.make_prefetch_hook().running(session):
        step = session.make_callable(list(fetches))
        yield lambda: step()[0]


def _step_seconds() -> dict[str, list[float]]:
  """Returns the seconds of a step in each round. The ways take turns, in an order that alternates between rounds."""
  rounds: dict[str, list[float]] = {name: [] for name in _WAYS}
  losses: dict[str, float] = {}
  for turn in range(_ROUNDS):
    # Only one way is open at a time; otherwise a stage would fill its buffer while another way is measured.
    for name, (make_features, smart_stage) in list(_WAYS.items())[:: (-1) ** turn]:
      with _open(make_features, smart_stage) as step:
        blocks.cost(step, 0, _WARM_UP_STEPS)
        rounds[name].append(blocks.cost(step, 0, _MEASURED_STEPS).seconds)
        losses[name] = step()
  # All ways train on the same records in the same order.
  np.testing.assert_allclose(list(losses.values()), losses[_PLAIN], rtol=1e-2)
  return rounds


def main() -> None:
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  starts = [("nodes", "Grappler", "without, s", "with, s", "difference, s", "ratio", "`tf.staging.explain`, s")]
  starts += [_start_row(nodes, grappler) for grappler, sizes in _START_NODES.items() for nodes in sizes]
  rounds = _step_seconds()
  medians = {name: statistics.median(values) for name, values in rounds.items()}
  steps = [("way", "steps/s", "ms per step", report.INTERVAL, "speed-up over the plain way", "speed-up over `map`")]
  for name, seconds in medians.items():
    steps.append((
        name,
        f"{1 / seconds:.1f}",
        f"{seconds * 1e3:.2f}",
        report.milliseconds_interval(rounds[name]),
        f"{medians[_PLAIN] / seconds:.2f}",
        f"{medians[_DATASET] / seconds:.2f}",
    ))
  print(f"""# The cost of SmartStage's start, and the gain

{report.command("smart_stage")}

## The first step

{report.markdown(starts)}

The table shows the seconds from the creation of a session to the end of its first training step: the initialiser of
the variable, the start of the stage and the step, with and without `do_smart_stage`. Half of the nodes depend only on
an iterator, the other half also on a variable; each node adds two earlier ones, and the last one updates the variable.
The numbers are medians of {_START_ROUNDS[0]} to {_START_ROUNDS[1]} rounds in which the ways take turns, and
the ratio is the median of those of the rounds. `tf.staging.explain` only finds the
partition, but it receives the graph from Python.

## The gain

{report.markdown(steps)}

A record has {_BATCH} rows. The work on a row cleans, splits and pads up to {_WORDS} words, crosses them with a pair
of two other columns, hashes the results, and bucketizes 16 numbers. The training has an embedding of {_BUCKETS:,}
rows, two dense layers and Adagrad. All ways but `map` are the same program. SmartStage's buffer holds {_CAPACITY}
records. The plain way is `tf.data` with the work in the step; the last two columns say how many times as fast a way
is. Each way has its own graph and session, and only one way is open at a time. The numbers are medians of {_ROUNDS}
rounds of {_MEASURED_STEPS} steps, after {_WARM_UP_STEPS} steps that are not counted, with the confidence interval of
the median. All ways end with the same loss.""")


if __name__ == "__main__":
  plain_command_line.check(__doc__)
  main()
