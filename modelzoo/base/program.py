# SPDX-License-Identifier: Apache-2.0
"""The command line of a model."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Sequence

import tensorflow as tf

from modelzoo.base import dataset
from modelzoo.base import evaluation
from modelzoo.base import training
from modelzoo.base.cluster import Cluster
from modelzoo.base.dataset import Input
from modelzoo.base.model import Model
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run
from modelzoo.base.training import Training


def parse(model: Model, arguments: Sequence[str] | None = None) -> Run:
  """Returns the run that a command line asks for.

  Args:
    model: The model.
    arguments: The words of the command line; None stands for those of this program.

  Raises:
    SystemExit: A word is wrong; the message on standard error names it, and what is allowed.
  """
  parser = argparse.ArgumentParser(description=f"Trains {model.name}.")
  parts = (Training, Input, Staging, Cluster, model.hyperparameters)
  for part in parts:
    part.add_flags(parser)
  flags = parser.parse_args(arguments)
  try:
    train, files, staging, cluster, hyperparameters = (part.from_flags(flags) for part in parts)
    run = Run(model, hyperparameters, files, train, staging, cluster)
    if cluster.job != "ps":
      dataset.files_of(files, training=True)
      if train.evaluate and cluster.is_chief:
        dataset.files_of(files, training=False)
  except ValueError as error:
    parser.error(str(error))
  return run


def main(model: Model, arguments: Sequence[str] | None = None) -> None:
  """Trains and evaluates a model, or serves its parameters, as the command line asks."""
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  run = parse(model, arguments)
  if run.staging.gpu and not tf.config.list_physical_devices("GPU"):
    raise SystemExit("error: gpu is set, but TensorFlow finds no GPU")
  server = run.cluster.server(tf.ConfigProto(device_count={} if run.staging.gpu else {"GPU": 0}))
  if run.cluster.job == "ps":
    run.cluster.serve(server)
    return
  with contextlib.ExitStack() as stack:
    checkpoint = run.training.checkpoint or None
    if checkpoint is None and run.training.evaluate and run.cluster.is_chief:
      checkpoint = stack.enter_context(tempfile.TemporaryDirectory())
    report = training.train(run, checkpoint=checkpoint, server=server, output=sys.stdout)
    print(
        f"{model.name}: {report.steps} steps, {report.steps_per_second:.1f} steps/s, loss {report.loss:.4f}, AUC"
        f" {report.auc:.4f}", flush=True)
    if run.training.evaluate and run.cluster.is_chief:
      held_out = evaluation.evaluate(run, checkpoint)
      print(
          f"{model.name}: held-out loss {held_out.loss:.4f}, AUC {held_out.auc:.4f} of {held_out.rows} rows",
          flush=True)
