#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains Keras models with `tf.staging.SmartStage` on a GPU, beside the ways without it, for benchmarks/gpu.md.

Compares the losses of each way, then how fast they are, in rounds in which they take turns. Prints a table in Markdown,
each row when it is known. With `--device=cpu` it tries itself on a machine without a GPU.

With `--xla`, for Keras 3, XLA compiles what it can: without the callback nothing of a model that has such layers, and
with it all but these layers. So losses are then compared with those of the same layers in `dataset.map`. There they may
differ by what XLA sums in another order, since it has no fixed one on a GPU.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

os.environ["TF_API_VERSION"] = "2"

import numpy as np
import tensorflow as tf

_KERAS_3 = hasattr(tf.keras, "ops")
_BATCH = 1024
_ROUNDS = 5
_SECONDS = 0.7
_EQUAL_STEPS = 12
_WARM_UP_STEPS = 5
# By how much losses may differ, in proportion, where XLA sums in any order.
_XLA_TOLERANCE = 1e-4


class _Model(NamedTuple):
  """A model whose first layers can only run on the host.

  Attributes:
    name: What it is called in the table.
    inputs: The rows of one batch.
    prepare: Builds the layers of the host; returns what maps the inputs to what the rest of the model takes.
    rest: Builds the rest; returns what maps that to the model's output.
  """

  name: str
  inputs: np.ndarray
  prepare: Callable[[], Callable[[tf.Tensor], tf.Tensor]]
  rest: Callable[[], Callable[[tf.Tensor], tf.Tensor]]


def _dense(units: int) -> Callable[[tf.Tensor], tf.Tensor]:
  layers = [tf.keras.layers.Dense(units, "relu"), tf.keras.layers.Dense(units, "relu"), tf.keras.layers.Dense(1)]

  def apply(value: tf.Tensor) -> tf.Tensor:
    for layer in layers:
      value = layer(value)
    return value

  return apply


def _embedded(bins: int, size: int, units: int) -> Callable[[tf.Tensor], tf.Tensor]:
  embedding, dense = tf.keras.layers.Embedding(bins, size), _dense(units)
  return lambda indices: dense(tf.keras.layers.Flatten()(embedding(indices)))


def _models(quick: bool) -> list[_Model]:
  random = np.random.RandomState(0)
  rows, units = (32, 8) if quick else (_BATCH, 1024)
  words = random.randint(0, 1_000_000, [rows, 26]).astype(str)
  texts = np.array([" ".join(random.choice(["red", "green", "blue"], 40)) for _ in range(rows)])

  def vectorized() -> Callable[[tf.Tensor], tf.Tensor]:
    layer = tf.keras.layers.TextVectorization(max_tokens=100, output_sequence_length=40)
    layer.set_vocabulary(["red", "green", "blue"])
    return layer

  return [
      _Model("26 columns of words, hashed", words, lambda: tf.keras.layers.Hashing(100_000),
             lambda: _embedded(100_000, 16, units)),
      _Model("texts of 40 words, looked up", texts, vectorized, lambda: _embedded(100, 16, units)),
  ]


_INSIDE, _AHEAD, _MAPPED = "in the model", "in the model, with `tf.staging.SmartStage`", "in `dataset.map`"


class _Training:
  """A model in training, with its layers of the host in the model or in its dataset."""

  def __init__(self, model: _Model, way: str, device: str, xla: bool):
    tf.keras.utils.set_random_seed(1)
    targets = np.linspace(0, 1, len(model.inputs), dtype=np.float32)[:, None]
    with tf.device(device):
      prepare, rest = model.prepare(), model.rest()
      if way == _MAPPED:
        example = prepare(tf.constant(model.inputs[:1]))
        keras_input = tf.keras.Input(example.shape[1:], dtype=example.dtype)
        outputs = rest(keras_input)
      else:
        keras_input = tf.keras.Input(model.inputs.shape[1:], dtype=tf.string)
        outputs = rest(prepare(keras_input))
      self._model = tf.keras.Model(keras_input, outputs)
    # Keras 2 compiles an optimizer's update with XLA on a GPU, and XLA needs cuDNN, which a kit may lack.
    optimizer = tf.keras.optimizers.SGD(**({} if _KERAS_3 else {"jit_compile": False}))
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")  # Keras 3 switches XLA off for layers that XLA cannot compile.
      self._model.compile(optimizer, "mse", jit_compile=xla)
    data = tf.data.Dataset.from_tensors((model.inputs, targets)).repeat()
    if way == _MAPPED:
      data = data.map(lambda x, y: (prepare(x), y), num_parallel_calls=tf.data.AUTOTUNE)
    self._data = data if way == _INSIDE else data.prefetch(2)
    self._callbacks = [tf.staging.SmartStage(num_threads=4)] if way == _AHEAD else []

  def losses(self, steps: int) -> list[float]:
    found = []
    note = tf.keras.callbacks.LambdaCallback(on_train_batch_end=lambda step, logs: found.append(logs["loss"]))
    self._model.fit(self._data, steps_per_epoch=steps, verbose=0, callbacks=[*self._callbacks, note])
    return found

  def seconds_per_step(self, seconds: float) -> float:
    clock = _Clock(seconds)
    self._model.fit(self._data, steps_per_epoch=1_000_000, verbose=0, callbacks=[*self._callbacks, clock])
    return clock.seconds_per_step


class _Clock(tf.keras.callbacks.Callback):
  """Ends training some seconds after its first steps."""

  def __init__(self, seconds: float):
    super().__init__()
    self._seconds = seconds
    self.seconds_per_step = 0.0

  def on_train_batch_end(self, batch: int, logs=None) -> None:
    float(logs["loss"])  # Waits for the step.
    if batch < _WARM_UP_STEPS:
      self._began = time.perf_counter()
    elif (passed := time.perf_counter() - self._began) > self._seconds:
      self.seconds_per_step = passed / (batch + 1 - _WARM_UP_STEPS)
      self.model.stop_training = True


def _largest_difference(values: list[float], wanted: list[float]) -> float:
  """Returns by how much values differ from others at most, in proportion."""
  return float(np.max(np.abs(np.subtract(values, wanted)) / np.abs(wanted)))


def main() -> int:
  """Prints the table.

  Returns:
    The number of models whose losses differ.
  """
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="where the rest of the model is computed")
  parser.add_argument("--xla", action="store_true", help="let XLA compile what it can; needs Keras 3")
  arguments = parser.parse_args()
  quick, xla = arguments.device == "cpu", arguments.xla
  if xla and not _KERAS_3:
    parser.error("--xla needs Keras 3: Keras 2 does not train models whose layers XLA cannot compile")
  if not xla:  # Keras 3 does not use XLA where ops are deterministic.
    tf.config.experimental.enable_op_determinism()
  ways = (_INSIDE, _AHEAD, _MAPPED)
  same, tolerance = (_MAPPED, _XLA_TOLERANCE) if xla else (_INSIDE, 0.0)
  print(f"| layers of the host | {', steps/s | '.join(ways)}, steps/s | losses beside those {same} |\n"
        f"|---|{'---:|' * len(ways)}---|", flush=True)
  differing = 0
  for model in _models(quick):
    trainings = {way: _Training(model, way, "/cpu:0" if quick else "/gpu:0", xla) for way in ways}
    losses = {way: training.losses(_EQUAL_STEPS) for way, training in trainings.items()}
    rounds = [[training.seconds_per_step(0.05 if quick else _SECONDS) for training in trainings.values()]
              for _ in range(1 if quick else _ROUNDS)]
    speeds = [1 / statistics.median(values) for values in zip(*rounds, strict=True)]
    difference = _largest_difference(losses[_AHEAD], losses[same])
    shown = f"at most {difference:.1e} apart, in proportion" if difference else "equal to the bit"
    if not difference <= tolerance:
      differing += 1
      shown = f"**differ**: {losses[_AHEAD]}, {losses[same]}"
    print(f"| {model.name} | {' | '.join(f'{speed:.1f}' for speed in speeds)} | {shown} |", flush=True)
  return differing


if __name__ == "__main__":
  sys.exit(main())
