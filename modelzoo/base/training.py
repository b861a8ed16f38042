# SPDX-License-Identifier: Apache-2.0
"""The training loop."""

from __future__ import annotations

import dataclasses
from typing import TextIO

import tensorflow as tf

from modelzoo.base import dataset
from modelzoo.base.cluster import Cluster
from modelzoo.base.dataset import Input
from modelzoo.base.model import Model
from modelzoo.base.model import build
from modelzoo.base.progress import Progress
from modelzoo.base.progress import Report
from modelzoo.base.settings import Settings
from modelzoo.base.settings import setting
from modelzoo.base.staging import Staging


@dataclasses.dataclass(frozen=True)
class Training(Settings):
  """How long to train, and what is kept."""

  steps: int = setting(1000, "the global step at which training ends, counting those before a checkpoint", least=1)
  checkpoint: str = setting(
      "", "the folder of checkpoints and TensorBoard's summaries; training goes on from the latest checkpoint")
  save_seconds: int = setting(600, "seconds between checkpoints; the end of training saves one, too", least=1)
  evaluate: bool = setting(True, "evaluate with the held-out files after training")
  seed: int = setting(0, "determines the initial values and the order of the rows", least=0)
  inter_op_threads: int = setting(0, "threads that run ops; 0 means one for each core", least=0)
  intra_op_threads: int = setting(0, "threads that share the work of an op; 0 means one for each core", least=0)


@dataclasses.dataclass(frozen=True)
class Run:
  """Everything that determines a run."""

  model: Model
  hyperparameters: Settings
  input: Input
  training: Training = Training()
  staging: Staging = Staging()
  cluster: Cluster = Cluster()

  def __post_init__(self):
    """Checks what no part can check alone.

    Raises:
      ValueError: A distributed session cannot have a setting.
    """
    if self.cluster.job != "local" and self.staging.streams != 1:
      raise ValueError(
          f"streams is {self.staging.streams}, but must be 1 for job {self.cluster.job}: distributed sessions have no"
          " streams")

  def config(self) -> tf.ConfigProto:
    """Returns the configuration of a session of the default graph."""
    config = tf.ConfigProto(
        inter_op_parallelism_threads=self.training.inter_op_threads,
        intra_op_parallelism_threads=self.training.intra_op_threads)
    self.staging.configure(config)
    self.cluster.configure(config)
    return config


def train(
    run: Run, *, checkpoint: str | None = None, server: tf.distribute.Server | None = None,
    losses: list[float] | None = None, output: TextIO | None = None) -> Report:
  """Trains a model.

  Args:
    run: The run.
    checkpoint: The folder of the checkpoints; None saves none.
    server: The server of this worker, if it does not train alone.
    losses: Receives the loss of each step.
    output: Where progress is shown, if anywhere.

  Returns:
    What training has reached.

  Raises:
    ValueError: There are no files to train on.
  """
  cluster, staging = run.cluster, run.staging
  with tf.Graph().as_default():
    with cluster.device():
      features, labels = staging.stage(
          dataset.batches(
              run.input, run.model.format, lambda parsed: run.model.prepare(parsed, run.hyperparameters), training=True,
              seed=run.training.seed, shard=cluster.task, shards=cluster.shards))
      built = build(run.model, features, labels, run.hyperparameters, seed=run.training.seed)
    progress = Progress(
        built, labels, run.training.steps, summaries=checkpoint if cluster.is_chief else None, losses=losses,
        output=output)
    hooks = [*staging.hooks(), *cluster.hooks(), tf.train.StopAtStepHook(last_step=run.training.steps), progress]
    # Progress writes the summaries from what each step fetches, because a step that fetches more is another graph.
    with tf.train.MonitoredTrainingSession(
        server.target if server else "", is_chief=cluster.is_chief, checkpoint_dir=checkpoint, hooks=hooks,
        save_checkpoint_secs=run.training.save_seconds, save_summaries_steps=None, save_summaries_secs=None,
        log_step_count_steps=None, config=run.config()) as session:
      while not session.should_stop():
        session.run(built.train_op)
  return progress.report()
