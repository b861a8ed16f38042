#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures where a stage on a stream of its own gains on a GPU, for docs/gpu.md.

Region and step do the same work, so a stage can double the speed at best. Prints a table in Markdown, each row when it
is known. With `--device=cpu` it tries itself on a machine without a GPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf
from lib import blocks
from tensorflow.core.protobuf import rewriter_config_pb2

_STREAMS = 2
_CAPACITY = 3
_WARM_UP_STEPS = 10
_SECONDS = 1.0
_TRIAL_SECONDS = 0.1


class _Work(NamedTuple):
  """What region and step compute, each.

  Attributes:
    name: What it is called in the table.
    add: Adds ops that compute a tensor from a number and a size.
    size: The size on a GPU.
    trial_size: The size on a CPU, where the program only tries itself.
  """

  name: str
  add: Callable[[tf.Tensor, int], tf.Tensor]
  size: int
  trial_size: int


def _sums(number: tf.Tensor, size: int) -> tf.Tensor:
  value = tf.fill([size, 4], number)
  for _ in range(20):
    value = tf.cumsum(value, axis=0) * 1e-6
  return tf.reduce_max(value)


def _products(count: int) -> Callable[[tf.Tensor, int], tf.Tensor]:
  def add(number: tf.Tensor, size: int) -> tf.Tensor:
    value, factor = tf.fill([size, size], number), tf.fill([size, size], 1 / size)
    for _ in range(count):
      value = tf.matmul(value, factor)
    return tf.reduce_max(value)

  return add


_WORKS = (
    # Sums along few long columns.
    _Work("long kernels that fill a small part of the GPU", _sums, 200_000, 100),
    # The host launches them hardly faster than the GPU computes them.
    _Work("short kernels", _products(300), 64, 8),
    _Work("kernels that fill the GPU", _products(10), 2048, 32),
)
# The stream of the stage; None is no stage. The first session of a process determines how many streams there are.
_WAYS = {"stage on stream 1": 1, "stage on stream 0": 0, "no stage": None}


def _config() -> tf.ConfigProto:
  config = tf.ConfigProto()
  rewriter = config.graph_options.rewrite_options
  rewriter.use_multi_stream = rewriter_config_pb2.RewriterConfig.ON
  rewriter.multi_stream_opts.multi_stream_num = _STREAMS
  config.graph_options.optimizer_options.stage_multi_stream = True
  return config


def _steps_per_second(work: _Work, stream: int | None, on_gpu: bool) -> float:
  device = "/gpu:0" if on_gpu else "/cpu:0"
  size, seconds = (work.size, _SECONDS) if on_gpu else (work.trial_size, _TRIAL_SECONDS)
  with tf.Graph().as_default():
    number = tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(1 << 40)).get_next()
    with tf.device("/cpu:0"):
      number = tf.cast(number % 7, tf.float32)
    with tf.device(device):
      record = work.add(number, size)
    if stream is not None:
      record = tf.staged(record, capacity=_CAPACITY, stage_subgraph_stream_id=stream)
    with tf.device(device):
      step = work.add(record, size)
    with tf.Session(config=_config()) as sess, tf.make_prefetch_hook().running(sess):
      run = sess.make_callable(step)
      blocks.cost(run, 0, _WARM_UP_STEPS)
      return 1 / blocks.cost(run, seconds).seconds


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="where region and step are computed")
  arguments = parser.parse_args()
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  print(f"| region and step are, each | {', steps/s | '.join(_WAYS)}, steps/s | stream 1 over no stage |\n"
        f"|---|{'---:|' * (len(_WAYS) + 1)}", flush=True)
  for work in _WORKS:
    rates = [_steps_per_second(work, stream, arguments.device == "gpu") for stream in _WAYS.values()]
    print(f"| {work.name} | {' | '.join(f'{rate:.1f}' for rate in rates)} | {rates[0] / rates[-1]:.2f} |", flush=True)


if __name__ == "__main__":
  main()
