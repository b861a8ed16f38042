# SPDX-License-Identifier: Apache-2.0
"""Shows how training goes on: a bar on the terminal, and summaries for TensorBoard."""

from __future__ import annotations

import collections
import time
from typing import Any
from typing import NamedTuple
from typing import TextIO

import numpy as np
import tensorflow as tf

from modelzoo.base.auc import auc
from modelzoo.base.model import Built

# The loss and the AUC are those of the rows of the last steps.
_STEPS_OF_THE_WINDOW = 50
_BAR_WIDTH = 24
# Between two updates of a terminal's bar, between two lines of another output, and between two summaries.
_BAR_SECONDS = 0.25
_LINE_SECONDS = 10.0
_SUMMARY_SECONDS = 2.0


class Report(NamedTuple):
  """What training has reached."""

  # The steps of all sessions so far, and of this one.
  global_step: int
  steps: int
  # Of this session, without its first step, in which TensorFlow prepares the graph.
  steps_per_second: float
  # Of the last 50 steps.
  loss: float
  auc: float


class Progress(tf.compat.v1.train.SessionRunHook):
  """Shows and keeps a report; every step also fetches the loss, the predictions and the labels."""

  def __init__(
      self, built: Built, labels: tf.Tensor, last_step: int, *, summaries: str | None = None,
      losses: list[float] | None = None, output: TextIO | None = None):
    """Creates the hook.

    Args:
      built: The model's graph.
      labels: The labels of a step.
      last_step: The global step at which training ends.
      summaries: The folder that gets the summaries, if any.
      losses: Receives the loss of each step.
      output: Where the bar is shown, if anywhere.
    """
    self._fetches = {"loss": built.loss, "predictions": built.predictions, "labels": labels}
    self._last_step = last_step
    self._summaries = summaries
    self._losses = [] if losses is None else losses
    self._output = output
    self._terminal = output is not None and output.isatty()
    self._window: collections.deque = collections.deque(maxlen=_STEPS_OF_THE_WINDOW)
    self._steps = 0
    self._global_step = 0
    self._began = self._ended = self._shown = self._summarized = 0.0

  def begin(self) -> None:
    """Adds the global step to what is fetched."""
    self._fetches["global_step"] = tf.train.get_global_step()

  def after_create_session(self, session: tf.Session, coord: tf.train.Coordinator) -> None:
    """Reads the step from which training goes on."""
    del coord
    self._global_step = int(session.run(self._fetches["global_step"]))

  def before_run(self, run_context: Any) -> tf.train.SessionRunArgs:
    """Asks for the fetches."""
    del run_context
    return tf.train.SessionRunArgs(self._fetches)

  def after_run(self, run_context: Any, run_values: Any) -> None:
    """Keeps the results of a step, and shows them from time to time."""
    del run_context
    now = time.monotonic()
    results = run_values.results
    self._steps += 1
    # The step may have read the number before it added one, and other workers may have added more.
    self._global_step = max(int(results["global_step"]), self._global_step + 1)
    self._window.append((results["labels"], results["predictions"], results["loss"]))
    self._losses.append(float(results["loss"]))
    if self._steps == 1:
      self._began = self._shown = self._summarized = now
    self._ended = now
    if self._output and now - self._shown >= (_BAR_SECONDS if self._terminal else _LINE_SECONDS):
      self._shown = now
      self._show()
    if self._summaries and now - self._summarized >= _SUMMARY_SECONDS:
      self._summarized = now
      self._summarize()

  def end(self, session: Any) -> None:
    """Shows the last report."""
    del session
    if not self._steps:
      return
    if self._output:
      self._show()
      if self._terminal:
        print(file=self._output)
    if self._summaries:
      self._summarize()

  def report(self) -> Report:
    """Returns what training has reached."""
    labels, predictions, losses = zip(*self._window, strict=True) if self._window else ([[]], [[]], [np.nan])
    seconds = self._ended - self._began
    return Report(
        self._global_step, self._steps, (self._steps - 1) / seconds if seconds else float("nan"),
        float(np.mean(losses)), auc(np.concatenate(labels), np.concatenate(predictions)))

  def _show(self) -> None:
    report = self.report()
    filled = min(_BAR_WIDTH, _BAR_WIDTH * report.global_step // max(1, self._last_step))
    text = (
        f"[{'=' * filled}{'.' * (_BAR_WIDTH - filled)}] {report.global_step}/{self._last_step}"
        f"  {report.steps_per_second:.1f} steps/s  loss {report.loss:.4f}  AUC {report.auc:.4f}")
    print(f"\r{text}" if self._terminal else text, end="" if self._terminal else "\n", file=self._output, flush=True)

  def _summarize(self) -> None:
    report = self.report()
    values = {"loss": report.loss, "auc": report.auc, "steps_per_second": report.steps_per_second}
    summary = tf.Summary(value=[tf.Summary.Value(tag=name, simple_value=value) for name, value in values.items()])
    writer = tf.summary.FileWriterCache.get(self._summaries)
    writer.add_summary(summary, report.global_step)
    writer.flush()
