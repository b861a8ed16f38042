#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how much equal sessions of one process differ, for benchmarks/equal_sessions.md.

A difference between two ways to train that is no larger than this says nothing about the ways.
`.venv/bin/python benchmarks/equal_sessions.py --picture=benchmarks/equal_sessions.svg > benchmarks/equal_sessions.md`
takes about 7 minutes; `--quick` tries whether it works.
"""

from __future__ import annotations

import contextlib
from typing import Any
from typing import NamedTuple

import tensorflow as tf
from lib import blocks
from lib import model_runs
from lib import parts_command_line
from lib import pictures
from lib import report

from modelzoo.base import model as models
from modelzoo.base.dataset import Input
from modelzoo.base.staging import Staging
from modelzoo.base.training import Run


class Case(NamedTuple):
  """What all sessions of a group do."""

  title: str
  model: str
  staging: Staging = Staging()
  # How many inter-op threads each session has for itself; with 0, all share those of the process. With threads of their
  # own, the sessions train on one record that is in memory, so that no thread prepares records beside them.
  threads: int = 0


_CASES = {
    "deepfm": Case("DeepFM, no stage", "deepfm"),
    "deepfm_smart": Case("DeepFM, SmartStage", "deepfm", Staging(staging="smart")),
    "dlrm": Case("DLRM, no stage", "dlrm"),
    "dlrm_smart": Case("DLRM, SmartStage", "dlrm", Staging(staging="smart")),
    "two_threads": Case("DeepFM, the step alone, two inter-op threads", "deepfm", threads=2),
    "one_thread": Case("DeepFM, the step alone, one inter-op thread", "deepfm", threads=1),
}
_SESSIONS = ("first", "second", "third", "fourth")


class Size(NamedTuple):
  """How much is measured of each case."""

  seconds: float
  rounds: int
  rows: int
  batch: int


_FULL = Size(seconds=60, rounds=20, rows=40_000, batch=256)
_QUICK = Size(seconds=0.5, rounds=1, rows=600, batch=32)


def _measure(case: Case, quick: bool) -> blocks.Rounds:
  size = _QUICK if quick else _FULL
  model = models.load(case.model)
  with contextlib.ExitStack() as stack:
    data = stack.enter_context(model_runs.files_of(model, size.rows))
    run = Run(
        model, model.hyperparameters(), Input(data=data, batch_size=size.batch, tf_data="best"), staging=case.staging)
    source, threads = None, None
    if case.threads:
      source = model_runs.one_record(run)
      threads = tf.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=case.threads)
    steps = {
        session: stack.enter_context(model_runs.stepping(run, source, config=threads)) for session in _SESSIONS
    }
    return blocks.in_turns(steps, size.seconds, size.rounds)


def _write(results: dict[str, Any]) -> parts_command_line.Page:
  table = [
      ("what trains", "session, as opened", "ms per step", "CPU ms per step", "times as fast as the first",
       report.INTERVAL)]
  groups = []
  for name, rounds in results.items():
    title, bars = _CASES[name].title, []
    for session in _SESSIONS:
      cost = blocks.median([blocks.Cost(*values) for values in rounds[session]])
      ratio = blocks.ratio(rounds, session, _SESSIONS[0])
      table.append((
          "" if bars else title, session, report.milliseconds(cost.seconds), report.milliseconds(cost.cpu_seconds),
          f"{ratio.median:.3f}", report.interval(ratio, digits=3)))
      bars.append(pictures.Bar(session, *ratio))
    groups.append(pictures.Group(title, bars))
  return parts_command_line.Page(
      f"""# How much do equal sessions of one process differ?

{report.command("equal_sessions")}

{report.markdown(table, left=2)}

Each row is a session with a graph of its own, which trains the same model from the same files as the others of its
group. These are all open at once and take turns; the numbers are medians of {_FULL.rounds} rounds. So a ratio of two
ways to train needs several sessions of each, as in [models.md](models.md) and
[parameter_servers.md](parameter_servers.md).

The sessions of the last two groups have threads of their own, and train on one record that is in memory. If equal
sessions differ with two inter-op threads, and not with one, then they differ in which ops run beside which.""",
      pictures.bars("Times as fast as the first of four equal sessions", groups, mark=1.0))


if __name__ == "__main__":
  parts_command_line.main(
      __file__, __doc__,
      {name: lambda quick, case=case: _measure(case, quick) for name, case in _CASES.items()},
      _write, quick=("deepfm", "one_thread"))
