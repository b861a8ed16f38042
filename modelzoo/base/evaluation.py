# SPDX-License-Identifier: Apache-2.0
"""Evaluation with held-out files."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from modelzoo.base import dataset
from modelzoo.base.auc import auc
from modelzoo.base.cluster import Cluster
from modelzoo.base.model import build
from modelzoo.base.training import Run


class Evaluation(NamedTuple):
  """How well a model predicts rows that it was not trained on."""

  rows: int
  # The mean of the cross-entropy, in nats.
  loss: float
  auc: float


def evaluate(run: Run, checkpoint: str) -> Evaluation:
  """Evaluates a model with the held-out files, which it reads once.

  Args:
    run: The run whose training saved the checkpoint.
    checkpoint: The folder of the checkpoints, of which the latest is used.

  Raises:
    ValueError: There is no checkpoint, or there are no held-out files.
  """
  if not tf.train.latest_checkpoint(checkpoint):
    raise ValueError(f"checkpoint is {checkpoint!r}, but must be a folder that has a checkpoint")
  # The checkpoint has all variables, so one process evaluates alone.
  run = dataclasses.replace(run, cluster=Cluster())
  labels, predictions, losses = [], [], []
  with tf.Graph().as_default():
    features, label = run.staging.stage(
        dataset.batches(
            run.input, run.model.format, lambda parsed: run.model.prepare(parsed, run.hyperparameters), training=False))
    built = build(run.model, features, label, run.hyperparameters, training=False)
    creator = tf.train.ChiefSessionCreator(checkpoint_dir=checkpoint, config=run.config())
    with tf.train.MonitoredSession(creator, hooks=run.staging.hooks()) as session:
      while not session.should_stop():
        batch_labels, batch_predictions, loss = session.run([label, built.predictions, built.loss])
        labels.append(batch_labels)
        predictions.append(batch_predictions)
        losses.append(loss * len(batch_labels))
  all_labels = np.concatenate(labels)
  return Evaluation(len(all_labels), sum(losses) / len(all_labels), auc(all_labels, np.concatenate(predictions)))
