# SPDX-License-Identifier: Apache-2.0
"""Trains the same model with and without `tf.staged`, and prints one line with the steps per second and their ratio.

The graph reads its input record by record from a file, on storage that is simulated to answer after 10 ms; a step
computes for about as long. Without the stage, a step waits for its read; with it, the next read happens during the
step. The two kinds of run alternate, so that a machine that speeds up or slows down affects both.
"""

import pathlib
import statistics
import tempfile
import time

import numpy as np
import tensorflow as tf

_READ_SECONDS = 0.010
_BATCH = 224
_FEATURES = 448
_LAYERS = 3
_RECORDS = 16
_ROUNDS = 5
_WARM_UP_STEPS = 10
_MEASURED_STEPS = 100


class SlowFile:
  """A file with batches of examples, which is read from start to end and repeated; each read first sleeps."""

  def __init__(self, path: pathlib.Path):
    batches = np.random.default_rng(seed=0).standard_normal([_RECORDS, _BATCH, _FEATURES + 1], np.float32)
    path.write_bytes(batches.tobytes())
    self._file = path.open("rb")

  def record(self) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns features of shape [_BATCH, _FEATURES] and labels of shape [_BATCH, 1]; each run reads the next batch."""
    batch = tf.numpy_function(self._read, [], tf.float32)
    batch = tf.ensure_shape(batch, [_BATCH, _FEATURES + 1])
    return batch[:, :-1], batch[:, -1:]

  def _read(self) -> np.ndarray:
    time.sleep(_READ_SECONDS)
    size = _BATCH * (_FEATURES + 1) * np.dtype(np.float32).itemsize
    data = self._file.read(size)
    if len(data) < size:
      self._file.seek(0)
      data = self._file.read(size)
    return np.frombuffer(data, np.float32).reshape(_BATCH, _FEATURES + 1)


def _dense(inputs: tf.Tensor, units: int, name: str) -> tf.Tensor:
  """Multiplies with the matrix of a new variable."""
  return tf.matmul(inputs, tf.get_variable(name, [inputs.shape[1], units]))


def train_op(features: tf.Tensor, labels: tf.Tensor) -> tf.Operation:
  """Adds a small dense network and returns the op of one step of gradient descent."""
  hidden = features
  for layer in range(_LAYERS):
    hidden = tf.nn.relu(_dense(hidden, _FEATURES, f"hidden_{layer}"))
  loss = tf.losses.mean_squared_error(labels, _dense(hidden, 1, "output"))
  return tf.train.GradientDescentOptimizer(1e-3).minimize(loss, tf.train.get_or_create_global_step())


def steps_per_second(file: SlowFile, staged: bool) -> float:
  """Trains the model in a new graph and session.

  Args:
    file: The input.
    staged: Whether `tf.staged` reads the input ahead of the step.

  Returns:
    The steps per second after the warm-up.
  """
  with tf.Graph().as_default():
    record = file.record()
    if staged:
      record = tf.staged(record)
    step = train_op(*record)
    with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
      for _ in range(_WARM_UP_STEPS):
        sess.run(step)
      begin = time.perf_counter()
      for _ in range(_MEASURED_STEPS):
        sess.run(step)
      return _MEASURED_STEPS / (time.perf_counter() - begin)


def main() -> None:
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  with tempfile.TemporaryDirectory() as folder:
    file = SlowFile(pathlib.Path(folder) / "batches")
    speeds = {True: [], False: []}
    for _ in range(_ROUNDS):
      for staged, values in speeds.items():
        values.append(steps_per_second(file, staged))
  with_stage, without = (statistics.median(speeds[staged]) for staged in (True, False))
  print(
      f"{with_stage:.1f} steps/s with tf.staged, {without:.1f} without: {with_stage / without:.2f} times as fast"
      f" (medians of {_ROUNDS} alternating runs of {_MEASURED_STEPS} steps)")


if __name__ == "__main__":
  main()
