# SPDX-License-Identifier: Apache-2.0
"""Staged runs go on while the GPU computes a long step."""

import threading
import time

import numpy as np
import pytest
import tensorflow as tf

# The time that the region takes for a record, and the shortest step that tells staged runs that wait from others.
_RECORD_SECONDS = 0.002
_STEP_SECONDS = 0.3
_RECORDS_BEFORE = 50


class _Source:
  """A source of records, in Python, that notes when it yields them."""

  def __init__(self):
    self.times: list[float] = []
    self._enough = threading.Event()

  def next(self) -> np.ndarray:
    time.sleep(_RECORD_SECONDS)
    self.times.append(time.perf_counter())
    if len(self.times) > _RECORDS_BEFORE:
      self._enough.set()
    return np.full(1000, len(self.times), np.float32)

  def wait(self) -> None:
    assert self._enough.wait(60), "the stage does not run"

  def rate(self, begin: float, end: float) -> float:
    """Returns the records per second from one time to another."""
    return sum(begin <= moment < end for moment in self.times) / (end - begin)

  def longest_pause(self, begin: float, end: float) -> float:
    """Returns the longest time between two records, in seconds, from one time to another."""
    moments = [begin, *(moment for moment in self.times if begin <= moment < end), end]
    return max(after - before for before, after in zip(moments, moments[1:], strict=False))


def _long_step(size: int, products: int) -> tf.Tensor:
  """Adds products of matrices, each of which needs the one before; returns a scalar."""
  value = tf.fill([size, size], 1.0 / size)
  factor = tf.get_variable("factor", initializer=tf.fill([size, size], 1.0 / size))
  for _ in range(products):
    value = tf.matmul(value, factor)
  return tf.reduce_sum(value)


def _products(device: str, size: int) -> int:
  """Returns how many products take long enough; also compiles the kernels."""
  with tf.Graph().as_default(), tf.device(device):
    result = _long_step(size, 8)
    with tf.Session() as sess:
      sess.run(tf.global_variables_initializer())
      sess.run(result)
      began = time.perf_counter()
      sess.run(result)
      seconds = time.perf_counter() - began
  return max(8, min(2000, round(8 * 1.5 * _STEP_SECONDS / seconds)))


@pytest.mark.parametrize("on_cpu", [True, False], ids=["stage_subgraph_on_cpu", ""])
def test_staged_runs_go_on_during_a_long_step(device, on_cpu, record_property):
  size = 8192 if "gpu" in device else 256
  products = _products(device, size)
  source = _Source()
  with tf.device("/cpu:0"):
    value = tf.numpy_function(source.next, [], tf.float32)
    value.set_shape([1000])
  record = tf.staged(value, capacity=100_000)
  with tf.device(device):
    result = _long_step(size, products) + tf.reduce_sum(record)
  config = tf.ConfigProto()
  config.graph_options.optimizer_options.stage_subgraph_on_cpu = on_cpu
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      source.wait()
      sess.run(result)
      began = time.perf_counter()
      sess.run(result)
      ended = time.perf_counter()
  idle = source.rate(source.times[5], source.times[_RECORDS_BEFORE])
  busy = source.rate(began, ended)
  record_property("step", f"{(ended - began) * 1e3:.0f} ms")
  record_property("records/s beside an idle GPU", f"{idle:.0f}")
  record_property("records/s during the step", f"{busy:.0f}")
  record_property("longest pause between them", f"{source.longest_pause(began, ended) * 1e3:.0f} ms")
  assert ended - began > _STEP_SECONDS / 2
  # Without stage_subgraph_on_cpu, TensorFlow's copies wait for the step (docs/gpu.md): that is only measured. A step on
  # the CPU takes cores from the stage.
  if on_cpu and "gpu" in device:
    assert busy > 0.5 * idle
