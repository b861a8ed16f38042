# SPDX-License-Identifier: Apache-2.0
"""The doctor trains with stages, and notices steps that get no record, wrong ones, or errors."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.doctor import trial_runs

_SECONDS = 0.05


@pytest.mark.parametrize("check", [trial_runs.check_stage, trial_runs.check_smart_stage, trial_runs.check_pool])
def test_nothing_is_wrong_here(check):
  found, = check(_SECONDS)
  assert not found.is_problem
  assert "steps in 0.1 s, each with the right record" in found.text or "steps in 0.0 s" in found.text


def test_steps_without_a_stage():
  found, = trial_runs.train("none", lambda record, config: tf.identity(record), _SECONDS)
  assert found.is_problem
  assert "took no records from a stage" in found.text


def test_a_wrong_record():
  found, = trial_runs.train("wrong", lambda record, config: tf.staged(record) + 1, _SECONDS)
  assert found.text == "Step 0 got record 1."
  assert found.is_problem


def test_a_step_that_fails():
  one = [tf.int64.max]
  found, = trial_runs.train("fails", lambda record, config: tf.gather(one, tf.staged(record) + 1), _SECONDS)
  assert found.text.startswith("Training fails: ")
  assert found.is_problem
