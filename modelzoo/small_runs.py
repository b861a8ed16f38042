# SPDX-License-Identifier: Apache-2.0
"""Runs of the models that are small enough for tests, and learn something in them."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

from modelzoo.base.dataset import Input
from modelzoo.base.model import load
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run
from modelzoo.base.training import Training

_BEHAVIOURS = dict(buckets=1000, category_buckets=1000, embedding_size=8, history=8, optimizer="adam")
_HYPERPARAMETERS: dict[str, dict[str, Any]] = {
    "dlrm": dict(buckets=500, embedding_size=4, bottom=(16,), top=(32,), learning_rate=0.3),
    "deepfm": dict(buckets=500, embedding_size=4, hidden=(32,), learning_rate=0.01),
    "wide_and_deep": dict(buckets=500, embedding_size=4, hidden=(32,), learning_rate=0.05),
    "dssm": _BEHAVIOURS | dict(hidden=(32, 16), learning_rate=0.01),
    "din": _BEHAVIOURS | dict(hidden=(32,), attention=(8,), learning_rate=0.01),
    # TensorFlow computes up to 10 iterations of a loop at the same time, so only a longer one shows that the gradient
    # makes the loop wait for its own result.
    "dien": _BEHAVIOURS | dict(hidden=(32,), learning_rate=0.01, history=12),
}


def small_run(
    name: str, folders: Mapping[tuple[str, str], pathlib.Path], steps: int, *, batch_size: int = 128,
    form: str = "csv", tf_data: str = "plain", seed: int = 0, **staging: Any) -> Run:
  """Returns a run.

  Args:
    name: The model's name.
    folders: Folders of files, by data set and format.
    steps: The global step at which training ends.
    batch_size: Rows of a step.
    form: The format of the files.
    tf_data: What tf.data does.
    seed: Determines the initial values and the order of the rows.
    **staging: The settings of stages.
  """
  model = load(name)
  dataset = "criteo" if model.format.name == "criteo" else "taobao"
  files = Input(data=str(folders[dataset, form]), batch_size=batch_size, tf_data=tf_data, shuffle=1000)
  return Run(
      model, model.hyperparameters(**_HYPERPARAMETERS[name]), files, Training(steps=steps, seed=seed),
      Staging(**staging))
