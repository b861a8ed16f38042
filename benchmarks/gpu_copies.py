#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how fast records of few large, and of many small, tensors go to a GPU, for benchmarks/gpu.md.

Prints a table in Markdown, each row when it is known. Fails if stage_subgraph_on_cpu is slower than the same program
without it. With `--device=cpu` it tries itself on a machine without a GPU.
"""

from __future__ import annotations

import argparse
import sys
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from lib import blocks

_CAPACITY = 4
_WARM_UP_STEPS = 10
_SECONDS = 0.8
_TRIAL_SECONDS = 0.1
# On a CPU, where the program only tries itself, tensors have so many times fewer values.
_TRIAL_DIVISOR = 16
# Two runs of one program differ by this much.
_NOISE = 0.05


class _Record(NamedTuple):
  """What a record consists of: so many tensors of float32, with so many values each."""

  name: str
  tensors: int
  values: int
  # Whether NumPy allocates the tensors. Those of TensorFlow's ops are in pinned memory if the GPU gets them.
  numpy: bool = False


_RECORDS = (
    _Record("400 of 4 KB", 400, 1024),
    _Record("40 of 400 KB", 40, 100_000),
    _Record("1 of 64 MB", 1, 16 << 20),
    _Record("8 of 8 MB from NumPy", 8, 2 << 20, numpy=True),
)
_NONE, _STAGED, _ON_CPU = "no stage", "tf.staged", "stage_subgraph_on_cpu"
_WAYS = (_NONE, _STAGED, _ON_CPU)


def _tensors(record: _Record) -> list[tf.Tensor]:
  """Adds the ops that compute a record."""
  number = tf.cast(tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(1 << 40)).get_next() % 3, tf.float32)
  if record.numpy:
    arrays = [np.ones(record.values, np.float32) for _ in range(record.tensors)]
    tensors = tf.numpy_function(lambda _: arrays, [number], [tf.float32] * record.tensors)
    for tensor in tensors:
      tensor.set_shape([record.values])
    return tensors
  variables = [
      tf.Variable(np.ones(record.values, np.float32), trainable=False, use_resource=True) for _ in range(record.tensors)
  ]
  return [variable * number for variable in variables]


def _steps_per_second(record: _Record, way: str, device: str, seconds: float) -> float:
  with tf.Graph().as_default():
    with tf.device("/cpu:0"):
      tensors = _tensors(record)
    if way != _NONE:
      tensors = tf.staged(tensors, capacity=_CAPACITY)
    with tf.device(device):
      step = tf.add_n([tf.reduce_sum(tensor[:8]) for tensor in tensors])
    config = tf.ConfigProto()
    config.graph_options.optimizer_options.stage_subgraph_on_cpu = way == _ON_CPU
    with tf.Session(config=config) as sess:
      sess.run(tf.global_variables_initializer())
      with tf.make_prefetch_hook().running(sess):
        run = sess.make_callable(step)
        blocks.cost(run, 0, _WARM_UP_STEPS)
        return 1 / blocks.cost(run, seconds).seconds


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="where the step is computed")
  arguments = parser.parse_args()
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  on_gpu = arguments.device == "gpu"
  print(f"| tensors of a record | {', steps/s | '.join(_WAYS)}, steps/s |\n|---|{'---:|' * len(_WAYS)}", flush=True)
  slower = []
  for record in _RECORDS:
    if not on_gpu:
      record = record._replace(values=record.values // _TRIAL_DIVISOR)
    rates = {
        way: _steps_per_second(record, way, f"/{arguments.device}:0", _SECONDS if on_gpu else _TRIAL_SECONDS)
        for way in _WAYS
    }
    print(f"| {record.name} | {' | '.join(f'{rate:.1f}' for rate in rates.values())} |", flush=True)
    if on_gpu and rates[_ON_CPU] < (1 - _NOISE) * max(rates[_NONE], rates[_STAGED]):
      slower.append(record.name)
  for name in slower:
    print(f"\nSlower with stage_subgraph_on_cpu than without: {name}.", flush=True)
  return 1 if slower else 0


if __name__ == "__main__":
  sys.exit(main())
