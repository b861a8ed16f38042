# SPDX-License-Identifier: Apache-2.0
"""SmartStage does not change the results of more than a thousand random graphs, step by step and bit for bit.

`tests/same_values/compare_smart_stage.py` compares more graphs, and can compare a single graph that differs.
"""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import random_graphs
from tensorflow_staging.python.testing import smart_stage_comparison as comparison
from tensorflow_staging.python.testing import test_util

_GRAPHS = 1200
_PARTS = 3
# The time limit of one part, which takes 25 seconds of each of two cores.
_SECONDS = 380


@pytest.mark.timeout(_SECONDS + 20)
@pytest.mark.parametrize("part", range(_PARTS))
def test_random_graphs_give_equal_results_with_and_without_smart_stage(part):
  count = _GRAPHS // _PARTS
  done = subprocess.run(
      [sys.executable, "tests/same_values/compare_smart_stage.py", f"--seed={part * count}", f"--graphs={count}"],
      cwd=test_util.ROOT, capture_output=True, text=True,
      timeout=_SECONDS, check=False)
  assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
  tally = json.loads(done.stdout.splitlines()[-1])
  assert tally["graphs"] == count
  # Without stages, all graphs would trivially be equal.
  assert tally["staged"] > 0.9 * count, tally
  assert tally["joined"] > 0.05 * count, tally
  assert tally["manual"] > 0.2 * count, tally
  assert tally["ended"] > 0.2 * count, tally
  assert tally["failed"] > 0, tally
  assert tally["restarted"] > 0.02 * count, tally
  # The comparison fails if SmartStage refuses anything but draws, and these are few.
  assert 0 < tally["refused"] < 0.1 * tally["accesses"], tally


def test_a_seed_always_gives_the_same_graph():
  one, two = random_graphs.make(5), random_graphs.make(5)
  assert one.text() == two.text()
  assert one.text() != random_graphs.make(6).text()


def test_the_comparison_detects_a_skipped_record(monkeypatch):
  """The patched session skips a record if SmartStage is on."""
  case = _counting_case()
  monkeypatch.setattr(random_graphs, "make", lambda seed: case)
  assert comparison.compare(0).steps == 2
  run = tf.Session.run

  def skip_one(sess, fetches, *args, **kwargs):
    if sess._config.graph_options.optimizer_options.do_smart_stage and isinstance(fetches, dict):
      run(sess, fetches, *args, **kwargs)
    return run(sess, fetches, *args, **kwargs)

  monkeypatch.setattr(tf.Session, "run", skip_one)
  with pytest.raises(comparison.DifferenceError, match="seed 0: step 0, mul:0: 3, without SmartStage 0"):
    comparison.compare(0)


def _counting_case() -> random_graphs.RandomGraph:
  variable = tf.get_variable("variable", initializer=np.int64(3))
  record = tf.multiply(test_util.dataset_record(5), variable, name="mul")
  return random_graphs.RandomGraph(
      seed=0, graph=tf.get_default_graph(), initializers=[variable.initializer],
      steps=[random_graphs.Step([record.name], {}) for _ in range(2)],
      capacity=1, grappler=False, smart_stage=True, begins_all=False, counters=random_graphs.random_ops.Counters())


@pytest.mark.parametrize(
    "other", [np.float32(1), np.array([1.0]), np.float64(2), None, np.float64(np.nextafter(1.0, 2))])
def test_types_shapes_and_bits_are_compared(other):
  assert comparison.same(np.float64(1), np.float64(1))
  assert not comparison.same(np.float64(1), other)


def test_strings_are_compared():
  assert comparison.same(np.array([b"a"], object), np.array([b"a"], object))
  assert not comparison.same(np.array([b"a"], object), np.array([b"b"], object))
