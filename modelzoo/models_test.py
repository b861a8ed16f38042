# SPDX-License-Identifier: Apache-2.0
"""Every model learns, and computes the same with and without stages."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from modelzoo.base import evaluation
from modelzoo.base import model
from modelzoo.base import training
from modelzoo.small_runs import small_run

# The models that learn with fewer steps than the others, but need longer for each.
_STEPS = {"wide_and_deep": 50, "dien": 80}

_EVERY_MODEL = pytest.mark.parametrize("name", model.NAMES)


def _losses(run):
  losses = []
  training.train(run, losses=losses)
  return losses


@_EVERY_MODEL
def test_losses_are_equal_with_and_without_a_stage(name, folders):
  plain, staged, smart = (
      _losses(small_run(name, folders, 6, batch_size=32, staging=way)) for way in ("none", "staged", "smart"))
  assert len(plain) == 6
  # Grappler may round sums differently, because it sees the input and the step together or apart.
  np.testing.assert_allclose(staged, plain, rtol=1e-4)
  np.testing.assert_allclose(smart, plain, rtol=1e-4)


def test_where_a_stage_runs_does_not_change_the_losses(folders):
  settings = (
      {"staging": "none"}, {"staging": "staged", "pool": 2}, {"staging": "smart", "pool": 2, "stage_on_cpu": False})
  plain, *others = (_losses(small_run("dssm", folders, 6, batch_size=32, **setting)) for setting in settings)
  for losses in others:
    np.testing.assert_allclose(losses, plain, rtol=1e-4)


@pytest.mark.parametrize("way", ["staged", "smart"])
def test_several_producers_train(way, folders):
  losses = _losses(small_run("dssm", folders, 12, batch_size=32, staging=way, threads=3, capacity=2))
  assert len(losses) == 12
  assert np.isfinite(losses).all()


@pytest.fixture(scope="module", params=model.NAMES)
def learning(request, folders, tmp_path_factory):
  """A function that trains a model with so many lookups ahead of the step, and returns what an evaluation finds."""
  folder = tmp_path_factory.mktemp("learning")

  @functools.cache
  def held_out(lookups):
    run = small_run(request.param, folders, _STEPS.get(request.param, 120), staging="smart", async_embedding=lookups)
    training.train(run, checkpoint=str(folder / str(lookups)))
    return evaluation.evaluate(run, str(folder / str(lookups)))

  return held_out


def test_training_learns(learning):
  assert learning(0).rows == 4000
  assert learning(0).auc > 0.6


def test_training_learns_with_embeddings_that_are_a_little_old(learning):
  """The AUC is within noise of that of lookups in the step."""
  assert learning(2).auc > 0.6
  assert abs(learning(2).auc - learning(0).auc) < 0.03


def test_another_seed_gives_other_losses(folders):
  first, second = (_losses(small_run("dssm", folders, 1, seed=seed)) for seed in (0, 1))
  assert abs(first[0] - second[0]) > 1e-4


@pytest.mark.parametrize("form", ["csv", "tfrecord"])
def test_tf_data_at_its_best_trains(form, folders):
  losses = _losses(small_run("dlrm", folders, 3, form=form, batch_size=16, tf_data="best", staging="staged"))
  assert np.isfinite(losses).all()


def test_training_goes_on_from_a_checkpoint(folders, tmp_path):
  folder = str(tmp_path)
  assert training.train(small_run("dssm", folders, 20), checkpoint=folder).steps == 20
  report = training.train(small_run("dssm", folders, 30, staging="staged"), checkpoint=folder)
  assert (report.global_step, report.steps) == (30, 10)
  weights = tf.train.load_variable(folder, "global_step"), tf.train.load_variable(folder, "factor")
  assert weights[0] == 30
  tags = [
      value.tag for file in tmp_path.glob("events*") for event in tf.train.summary_iterator(str(file))
      for value in event.summary.value]
  assert {"loss", "auc", "steps_per_second"} <= set(tags)


def test_evaluation_needs_a_checkpoint(folders, tmp_path):
  with pytest.raises(ValueError, match=f"checkpoint is '{tmp_path}', but must be a folder that has a checkpoint"):
    evaluation.evaluate(small_run("dlrm", folders, 1), str(tmp_path))


def test_an_unknown_model_is_refused():
  with pytest.raises(ValueError, match="name is 'dnn', but must be one of dlrm, din, dien, dssm, deepfm"):
    model.load("dnn")
