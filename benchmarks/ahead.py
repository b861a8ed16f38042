#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Keras steps with `tf.staging.SmartStage` and with the layers in `dataset.map`, for benchmarks/ahead.md.

`TF_API_VERSION=2 .venv/bin/python benchmarks/ahead.py > benchmarks/ahead.md` takes some minutes. `--quick` only tries
whether it works.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

os.environ.setdefault("TF_API_VERSION", "2")

import numpy as np
import tensorflow as tf
from lib import blocks
from lib import quietness
from lib import report

layers = tf.keras.layers
_ROUNDS = 15
_STEPS = 60
# Before each block: no way starts with what it has read while others had their turn, also into the buffer that tf.data
# adds at the end of a dataset.
_DRAINING_STEPS = 60
_BUFFER = 4
_PLAIN, _BY_HAND, _CALLBACK = "layers in the model", "layers in `dataset.map`", "`SmartStage`"


class Model(NamedTuple):
  """A model in two parts, and its data: (prepare, train) are made from the inputs and from what prepare returns."""

  rows: Callable[[], tf.data.Dataset]
  inputs: Callable[[], tf.keras.Input]
  prepare: Callable[[], Callable]
  train: Callable[[], Callable]


def _rows(x: np.ndarray, batch: int) -> tf.data.Dataset:
  y = np.random.RandomState(1).rand(len(x), 1).astype(np.float32)
  return tf.data.Dataset.from_tensor_slices((x, y)).batch(batch, drop_remainder=True).repeat()


def _words(shape: tuple[int, ...]) -> np.ndarray:
  return np.random.RandomState(0).randint(0, 5000, shape).astype(str)


def _texts() -> np.ndarray:
  return np.array([" ".join(row) for row in _words((1024, 100))])


def _waits(rows: tf.data.Dataset) -> tf.data.Dataset:
  def wait(x: np.ndarray) -> np.ndarray:
    time.sleep(0.005)
    return x

  return rows.map(lambda x, y: (tf.ensure_shape(tf.numpy_function(wait, [x], x.dtype), x.shape), y))


def _hashing() -> Callable:
  hashes = [layers.Hashing(10000) for _ in range(26)]
  return lambda x: tf.stack([hashed(x[:, i]) for i, hashed in enumerate(hashes)], 1)


def _embedding(buckets: int, units: int) -> Callable:
  body = [layers.Embedding(buckets, 16), layers.GlobalAveragePooling1D(), layers.Dense(units, "relu"), layers.Dense(1)]
  return lambda x: _through(body, x)


def _through(body: list, x: tf.Tensor) -> tf.Tensor:
  for layer in body:
    x = layer(x)
  return x


def _vectorization() -> Callable:
  layer = layers.TextVectorization(5000, output_sequence_length=100)
  layer.adapt(_texts())
  return layer


def _augmentation() -> Callable:
  body = [layers.RandomFlip(), layers.RandomRotation(0.1), layers.RandomZoom(0.1)]

  def augment(x: tf.Tensor) -> tf.Tensor:
    for layer in body:
      x = layer(x, training=True)
    return x

  return augment


def _convolution() -> Callable:
  body = [layers.Conv2D(16, 3, 2, activation="relu"), layers.GlobalAveragePooling2D(), layers.Dense(1)]
  return lambda x: _through(body, x)


MODELS = {
    "26 `Hashing`, 512 rows": Model(
        lambda: _rows(_words((4096, 26)), 512), lambda: tf.keras.Input((26,), dtype=tf.string), _hashing,
        lambda: _embedding(10000, 256)),
    "... whose source waits 5 ms": Model(
        lambda: _waits(_rows(_words((4096, 26)), 512)), lambda: tf.keras.Input((26,), dtype=tf.string), _hashing,
        lambda: _embedding(10000, 256)),
    "`TextVectorization`, 256 texts of 100 words": Model(
        lambda: _rows(_texts(), 256), lambda: tf.keras.Input((), dtype=tf.string), _vectorization,
        lambda: _embedding(5000, 256)),
    "flip, rotation and zoom, 64 images": Model(
        lambda: _rows(np.random.RandomState(2).rand(256, 64, 64, 3).astype(np.float32), 64),
        lambda: tf.keras.Input((64, 64, 3)), _augmentation, _convolution),
    "nothing to prepare": Model(
        lambda: _rows(np.random.RandomState(3).rand(256, 8).astype(np.float32), 32), lambda: tf.keras.Input((8,)),
        lambda: lambda x: x, lambda: layers.Dense(1)),
}


def _step(model: Model, way: str) -> Callable[[], object]:
  """Returns a call of one training step."""
  tf.keras.utils.set_random_seed(1)
  prepare, rows = model.prepare(), model.rows()
  inputs = model.inputs()
  if way == _BY_HAND:
    prepared = prepare(inputs)
    inputs = tf.keras.Input(prepared.shape[1:], dtype=prepared.dtype)
    outputs = model.train()(inputs)
    rows = rows.map(lambda x, y: (prepare(x), y), num_parallel_calls=tf.data.AUTOTUNE).prefetch(_BUFFER)
  else:
    outputs = model.train()(prepare(inputs))
  trained = tf.keras.Model(inputs, outputs)
  trained.compile("sgd", "mse")
  step, iterator = trained.make_train_function(), iter(rows)
  if way == _CALLBACK:
    step = tf.staging.ahead(step, capacity=_BUFFER)
  return lambda: step(iterator)


def _seconds(step: Callable[[], object], steps: int) -> float:
  for _ in range(min(_DRAINING_STEPS, steps)):
    step()
  began = time.perf_counter()
  for _ in range(steps):
    logs = step()
  float(logs["loss"])
  return (time.perf_counter() - began) / steps


def _measure(model: Model, rounds: int, steps: int) -> dict[str, list[float]]:
  """Returns the seconds of a step in each round; the ways take turns, in alternating order."""
  calls = {way: _step(model, way) for way in (_PLAIN, _BY_HAND, _CALLBACK)}
  seconds: dict[str, list[float]] = {way: [] for way in calls}
  for call in calls.values():
    _seconds(call, 1)
  for turn in range(rounds):
    for way, call in list(calls.items())[:: (-1) ** turn]:
      seconds[way].append(_seconds(call, steps))
  return seconds


def _dispatch_seconds(steps: int) -> float:
  """Returns how much of a step is the dispatch of `tf.function`, which a staged step skips."""
  total = tf.Variable(0.0)
  step = tf.function(lambda: total.assign_add(1.0))
  concrete = step.get_concrete_function()
  inputs, flat_call = concrete.captured_inputs, concrete._inference_function.flat_call  # pylint: disable=protected-access
  times: dict[bool, list[float]] = {False: [], True: []}
  for _ in range(_ROUNDS):
    for flat in times:
      began = time.perf_counter()
      for _ in range(steps):
        flat_call(inputs) if flat else step()  # pylint: disable=expression-not-assigned
      times[flat].append((time.perf_counter() - began) / steps)
  return statistics.median(times[False]) - statistics.median(times[True])


def _ratio(slow: list[float], fast: list[float]) -> str:
  """Returns the median ratio of the rounds, with its 95 % interval."""
  ratio = blocks.interval([a / b for a, b in zip(slow, fast, strict=True)])
  return f"{ratio.median:.2f} ({report.interval(ratio)})"


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--quick", action="store_true", help="measure too little to mean anything")
  quick = parser.parse_args().quick
  tf.get_logger().setLevel("ERROR")
  rounds, steps = (2, 2) if quick else (_ROUNDS, _STEPS)
  watch = quietness.Watch()
  print("# Keras steps whose layers prepare their input\n")
  print(f"`TF_API_VERSION=2 .venv/bin/python benchmarks/ahead.py > benchmarks/ahead.md`\n\n{report.run()}\n")
  print(f"| model | {_PLAIN}, ms | {_BY_HAND}, ms | {_CALLBACK}, ms | speed beside the model | ... beside the map |")
  print("| --- | ---: | ---: | ---: | ---: | ---: |")
  for name, model in MODELS.items():
    seconds = _measure(model, rounds, steps)
    medians = [f"{statistics.median(seconds[way]) * 1e3:.2f}" for way in (_PLAIN, _BY_HAND, _CALLBACK)]
    print(
        f"| {name} | {' | '.join(medians)} | {_ratio(seconds[_PLAIN], seconds[_CALLBACK])} |"
        f" {_ratio(seconds[_BY_HAND], seconds[_CALLBACK])} |", flush=True)
  print(f"""
Medians of {rounds} rounds of {steps} steps. Meanwhile, {watch.disturbance()}.

The ways are open in one process and take turns, in alternating order; before each block, {_DRAINING_STEPS} steps that
are not counted use up what a way has read while others had their turn. `SmartStage` and the map's `prefetch` hold
{_BUFFER} records each, and both choose their number of threads (`tf.data.AUTOTUNE`). A speed is the median of the
rounds' ratios, with its 95 % confidence interval; above 1.00, `SmartStage` is faster.

A staged step also skips the dispatch of `tf.function`: {_dispatch_seconds(20 if quick else 2000) * 1e3:.2f} ms of each
of its steps are no staging.""")


if __name__ == "__main__":
  main()
