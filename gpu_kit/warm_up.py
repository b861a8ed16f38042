# SPDX-License-Identifier: Apache-2.0
"""Starts TensorFlow and trains a small model on the GPU, so that the driver compiles the kernels that most models use.

The driver keeps what it compiles in its cache, so tests and benchmarks that follow start fast. Prints a table in
Markdown, each row when it is known. With `--device=cpu`, it trains on the CPU.
"""

from __future__ import annotations

import argparse
import math
import time

_STEPS = 3


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu", help="where the model trains")
  arguments = parser.parse_args()
  began = time.perf_counter()

  def done(name: str) -> None:
    nonlocal began
    print(f"| {name} | {time.perf_counter() - began:.2f} s |", flush=True)
    began = time.perf_counter()

  print("| | |\n|---|---|", flush=True)
  import tensorflow.compat.v1 as tf
  from tensorflow.python.client import device_lib

  done("import of TensorFlow")
  devices = device_lib.list_local_devices()
  done("start of the devices")
  for device in devices:
    description = device.physical_device_desc or device.device_type
    print(f"| {device.name} | {description}, {device.memory_limit / 1e9:.1f} GB |", flush=True)
  if not any(device.device_type == arguments.device.upper() for device in devices):
    raise ValueError("TensorFlow finds no GPU: its log above says why")
  graph = tf.Graph()
  with graph.as_default(), tf.device(f"/{arguments.device}:0"):
    train, loss = _model(tf)
    initialize = tf.global_variables_initializer()
  with tf.Session(graph=graph, config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    sess.run(initialize)
    done("initialization of the variables")
    for step in range(_STEPS):
      sess.run(train)
      done(f"step {step + 1}")
    final = sess.run(loss)
  if not math.isfinite(final):
    raise ValueError(f"the loss is {final}")


def _model(tf):
  """Adds a model with embeddings, dense layers, attention and a recurrence.

  Returns:
    The op that trains it, and the loss.
  """
  ids = tf.random.uniform([512, 20], maxval=1000, dtype=tf.int64)
  table = tf.get_variable("table", [1000, 16])
  rows = tf.nn.embedding_lookup(table, ids)
  pooled = tf.reduce_sum(rows, axis=1)
  attention = tf.nn.softmax(tf.matmul(rows, rows, transpose_b=True))
  attended = tf.reduce_mean(tf.matmul(attention, rows), axis=1)
  weights = tf.get_variable("weights", [32, 16])
  state = tf.zeros_like(pooled)
  for position in range(3):
    state = tf.tanh(tf.matmul(tf.concat([rows[:, position], state], axis=1), weights))
  hidden = tf.concat([pooled, attended, state], axis=1)
  for units in (64, 32, 1):
    layer = tf.get_variable(f"layer_{units}", [hidden.shape[1], units])
    hidden = tf.nn.bias_add(tf.matmul(hidden, layer), tf.get_variable(f"bias_{units}", [units]))
    if units > 1:
      hidden = tf.nn.relu(hidden)
  labels = tf.cast(ids[:, :1] % 2, tf.float32)
  loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=hidden))
  optimizers = [tf.train.AdagradOptimizer(0.01), tf.train.AdamOptimizer(0.001), tf.train.GradientDescentOptimizer(0.01)]
  return tf.group(*(optimizer.minimize(loss) for optimizer in optimizers)), loss


if __name__ == "__main__":
  main()
