#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `fit` with `SmartStage` and with the layers in `dataset.map`, for benchmarks/ahead.md and ahead_plugin.md.

`.venv/bin/python benchmarks/ahead.py > benchmarks/ahead.md` measures the fork with Keras 2, and
`.venv-plugin/2.21-3.11/bin/python benchmarks/ahead.py > benchmarks/ahead_plugin.md` the plugin with Keras 3, also with
XLA. Each takes some minutes. `--quick` only tries whether it works.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

os.environ.setdefault("TF_API_VERSION", "2")

import numpy as np
import tensorflow as tf

if hasattr(tf, "staging"):
  _PAGE, _KERAS = "ahead", "The fork, with Keras 2"
else:
  import tensorflow_staging

  tf.staging = tensorflow_staging
  _PAGE, _KERAS = "ahead_plugin", f"TensorFlow {tf.__version__} with Keras {tf.keras.__version__} and the plugin"

from lib import blocks
from lib import quietness
from lib import report

layers = tf.keras.layers
_ROUNDS = 15
_STEPS = 60
_BUFFER = 4
_WAITING = "... whose source waits 5 ms"
_PLAIN, _BY_HAND, _CALLBACK = "layers in the model", "layers in `dataset.map`", "`SmartStage`"


class Model(NamedTuple):
  """A model in two parts, and its data: (prepare, train) are made from the inputs and from what prepare returns."""

  rows: Callable[[], tf.data.Dataset]
  inputs: Callable[[], tf.keras.Input]
  prepare: Callable[[], Callable]
  train: Callable[[], Callable]
  jit_compile: bool = False
  steps_per_execution: int = 1


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


def _of_unknown_length(rows: tf.data.Dataset) -> tf.data.Dataset:
  return rows.filter(lambda *_: True)


def _hashing() -> Callable:
  hashes = [layers.Hashing(10000) for _ in range(26)]
  # Keras 2 has no ops.
  stack = tf.keras.ops.stack if hasattr(tf.keras, "ops") else tf.stack
  return lambda x: stack([hashed(x[:, i]) for i, hashed in enumerate(hashes)], 1)


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
    _WAITING: Model(
        lambda: _waits(_rows(_words((4096, 26)), 512)), lambda: tf.keras.Input((26,), dtype=tf.string), _hashing,
        lambda: _embedding(10000, 256)),
    "... of unknown length, `steps_per_execution=10`": Model(
        lambda: _of_unknown_length(_rows(_words((4096, 26)), 512)), lambda: tf.keras.Input((26,), dtype=tf.string),
        _hashing, lambda: _embedding(10000, 256), steps_per_execution=10),
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

if _PAGE == "ahead_plugin":
  # Keras 2 does not switch XLA off for a model with such layers: it cannot train.
  MODELS |= {f"{name}, `jit_compile=True`": MODELS[name]._replace(jit_compile=True)
             for name in ("26 `Hashing`, 512 rows", "`TextVectorization`, 256 texts of 100 words")}


class _EpochTime(tf.keras.callbacks.Callback):
  """Measures the last epoch."""

  def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
    self._began = time.perf_counter()

  def on_epoch_end(self, epoch: int, logs: object = None) -> None:
    self.seconds = time.perf_counter() - self._began


def _block(model: Model, way: str) -> Callable[[int], float]:
  """Returns a function that returns the seconds of a step in a block of so many."""
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
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Keras 3 switches XLA off for layers that XLA cannot compile.
    trained.compile(
        "sgd", "mse", jit_compile=model.jit_compile, steps_per_execution=model.steps_per_execution)
  timed = _EpochTime()
  callbacks = [timed, *([tf.staging.SmartStage(_BUFFER)] if way == _CALLBACK else [])]

  def seconds(steps: int) -> float:
    # The first epoch is not counted. It uses up what a way has read ahead when it begins, also into the buffer that
    # tf.data adds at the end of a dataset.
    trained.fit(rows, epochs=2, steps_per_epoch=steps, shuffle=False, verbose=0, callbacks=callbacks)
    return timed.seconds / steps

  return seconds


def _measure(model: Model, rounds: int, steps: int) -> dict[str, list[float]]:
  """Returns the seconds of a step in each round; the ways take turns, in alternating order."""
  measured = {way: _block(model, way) for way in (_PLAIN, _BY_HAND, _CALLBACK)}
  seconds: dict[str, list[float]] = {way: [] for way in measured}
  for block in measured.values():
    block(1)
  for turn in range(rounds):
    for way, block in list(measured.items())[:: (-1) ** turn]:
      seconds[way].append(block(steps))
  return seconds


def _source_alone(rows: tf.data.Dataset, rounds: int, elements: int) -> float:
  """Returns the seconds that an element of a source takes which is read as fast as it can be, with no model."""
  iterator = iter(rows)
  next(iterator)
  seconds = []
  for _ in range(rounds):
    began = time.perf_counter()
    for _ in range(elements):
      next(iterator)
    seconds.append((time.perf_counter() - began) / elements)
  return statistics.median(seconds)


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
  prefix = os.path.relpath(sys.prefix, pathlib.Path(__file__).parent.parent)
  command = f"`{prefix}/bin/python benchmarks/ahead.py > benchmarks/{_PAGE}.md`"
  print(f"{command}\n\n{report.run()} {_KERAS}.\n")
  print(f"| model | {_PLAIN}, ms | {_BY_HAND}, ms | {_CALLBACK}, ms | speed beside the model | ... beside the map |")
  print("| --- | ---: | ---: | ---: | ---: | ---: |")
  for name, model in MODELS.items():
    seconds = _measure(model, rounds, steps)
    medians = [f"{statistics.median(seconds[way]) * 1e3:.2f}" for way in (_PLAIN, _BY_HAND, _CALLBACK)]
    print(
        f"| {name} | {' | '.join(medians)} | {_ratio(seconds[_PLAIN], seconds[_CALLBACK])} |"
        f" {_ratio(seconds[_BY_HAND], seconds[_CALLBACK])} |", flush=True)
  alone = _source_alone(MODELS[_WAITING].rows(), rounds, steps)
  print(f"""
Medians of {rounds} rounds of {steps} steps. Meanwhile, {watch.disturbance()}.

The ways are open in one process and take turns, in alternating order. Each turn is a `fit` of two epochs, of which
the second is measured, so a time has what `fit` does for a step. `SmartStage` and the map's `prefetch` hold {_BUFFER}
records each, and both choose their number of threads (`tf.data.AUTOTUNE`). A speed is the median of the rounds' ratios,
with its 95 % confidence interval; above 1.00, `SmartStage` is faster.

The source that waits takes {alone * 1e3:.2f} ms for an element if nothing else runs: it also makes the batch, and hands
its strings to Python and back. tf.data reads it ahead in all three ways, so it is the limit of all three.""")
  if _PAGE == "ahead_plugin":
    print("""
With `jit_compile=True`, Keras uses XLA for no part of a model that has such layers, unless the callback is there: then
XLA compiles all but these layers. With the layers in `dataset.map`, it compiles the whole model.""")


if __name__ == "__main__":
  main()
