# SPDX-License-Identifier: Apache-2.0
"""Loops with a stage and the same loops without it, and the data that they read."""

import gc
import pathlib
import time

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)  # Sums in one order.
WORDS = ["a", "b", "c", "a", "q", "b", "z"] * 3


def plain(step):
  return step


def staged(**options):
  return lambda step: tf.staging.ahead(step, **{"capacity": 4, **options})


def drain(step, iterator, *args):
  """Calls the step until the data ends; returns what it has returned."""
  results = []
  while True:
    try:
      results.append(tf.nest.map_structure(lambda t: t.numpy().tolist(), step(iterator, *args)))
    except (tf.errors.OutOfRangeError, StopIteration):
      return results


def results_or_errors(step, iterator, total, number=3):
  """Calls the step so often; returns its results, or where it fails because of its data, what the total was."""
  results = []
  for _ in range(number):
    try:
      results.append(step(iterator).numpy())
    except tf.errors.InvalidArgumentError:
      results.append(("error", total.numpy()))
  return results


def count_of(step):
  """Returns whether the step runs ahead at the moment."""
  return len(step.stages())


def compare(program, **options):
  """Runs a program (wrap -> (values, wrapped step)) without and with a stage; the values must be equal, and staged."""
  expected, _ = program(plain)
  got, step = program(staged(**options))
  assert got == expected, f"{got} != {expected}"
  assert step.why_not is None, step.why_not


def epochs(step, dataset, number=3):
  return [drain(step, iter(dataset)) for _ in range(number)]


def words(batch=2):
  return tf.data.Dataset.from_tensor_slices(WORDS).batch(batch)


def numbers(texts):
  return tf.data.Dataset.from_tensor_slices(texts)


def threads_of_stages():
  names = []
  for path in pathlib.Path("/proc/self/task").glob("*/comm"):
    try:
      names.append(path.read_text().strip())
    except OSError:
      continue
  return [name for name in names if "tested" in name]


def wait_until(condition):
  deadline = time.monotonic() + 10
  while not condition():
    assert time.monotonic() < deadline, "it does not come to that"
    gc.collect()
    time.sleep(0.01)


def why_not(step, *iterators):
  wrapped = tf.staging.ahead(step)
  wrapped(*iterators)
  assert count_of(wrapped) == 0
  return wrapped.why_not


def compare_values(program):
  expected, _ = program(plain)
  got, _ = program(staged())
  assert got == expected, f"{got} != {expected}"
