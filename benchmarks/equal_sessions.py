#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how much equal sessions of one process differ, for benchmarks/equal_sessions.md.

A difference between two ways to train that is no larger than this says nothing about the ways.
`.venv/bin/python benchmarks/equal_sessions.py > benchmarks/equal_sessions.md` takes about 10 minutes; `--quick` tries
whether it works.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import tempfile
from typing import NamedTuple

import blocks
import model_runs
import quietness
import report
import tensorflow as tf

from modelzoo.base import model as models
from modelzoo.base.dataset import Input
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run

_MODELS = ("deepfm", "dlrm")
_STAGINGS = {"no stage": Staging(), "SmartStage": Staging(staging="smart")}
_SESSIONS = ("first", "second", "third", "fourth")


class Size(NamedTuple):
  """How much is measured."""

  seconds: float
  rounds: int
  rows: int
  batch: int


_FULL = Size(seconds=150, rounds=30, rows=40_000, batch=256)
_QUICK = Size(seconds=0.5, rounds=1, rows=600, batch=32)


def _rows(name: str, title: str, size: Size) -> list[tuple[str, ...]]:
  """Measures equal sessions; returns their rows of the table."""
  model = models.load(name)
  with contextlib.ExitStack() as stack:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    kind = model_runs.data_set_of(model)
    data = model_runs.write_files(folder, size.rows, (kind,))[kind]
    run = Run(
        model, model.hyperparameters(), Input(data=str(data), batch_size=size.batch, tf_data="best"),
        staging=_STAGINGS[title])
    steps = {session: stack.enter_context(model_runs.stepping(run)) for session in _SESSIONS}
    rounds = blocks.in_turns(steps, size.seconds, size.rounds)
  rows = []
  for session in _SESSIONS:
    cost, ratio = blocks.median(rounds[session]), blocks.ratio(rounds, session, _SESSIONS[0])
    rows.append((
        f"{model.name}, {title}" if not rows else "", session, report.milliseconds(cost.seconds),
        report.milliseconds(cost.cpu_seconds), f"{ratio.median:.3f}", report.interval(ratio, digits=3)))
  return rows


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--quick", action="store_true", help="measure too little to mean anything")
  quick = parser.parse_args().quick
  size = _QUICK if quick else _FULL
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  watch = quietness.Watch()
  rows = [
      ("model", "session, as opened", "ms per step", "CPU ms per step", "times as fast as the first", report.INTERVAL)]
  for name in _MODELS[:1] if quick else _MODELS:
    for title in _STAGINGS:
      rows += _rows(name, title, size)
  disturbance = watch.disturbance()
  print(f"""# How much do equal sessions of one process differ?

`.venv/bin/python benchmarks/equal_sessions.py > benchmarks/equal_sessions.md`, one run on {report.machine()}.

{report.markdown(rows, left=2)}

Each row is a session with a graph of its own, which trains the same model from the same files as the others of its
group. These are all open at once and take turns, as the ways of [models.md](models.md) do; the numbers are medians of
{size.rounds} rounds.

While it ran, other processes took {disturbance.others:.1%} of the cores' time, and other machines on the same hardware
{disturbance.stolen:.1%}.""")


if __name__ == "__main__":
  main()
