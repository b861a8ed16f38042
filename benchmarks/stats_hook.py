#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what live statistics cost the smallest step that a stage can have, for benchmarks/stats_hook.md.

`.venv/bin/python benchmarks/stats_hook.py > benchmarks/stats_hook.md` takes about two and a half minutes.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator

import tensorflow as tf
from lib import blocks
from lib import quietness
from lib import report

_BASE = "none"
# The hooks beside that which runs the stage.
_HOOKS = {
    _BASE: lambda: [],
    "`SessionRunHook()`, which does nothing": lambda: [tf.compat.v1.train.SessionRunHook()],
    "`StatsHook()`, every 10 s": lambda: [tf.staging.StatsHook()],
    "`StatsHook(every_n_secs=0.01)`": lambda: [tf.staging.StatsHook(every_n_secs=0.01)],
    "`StatsHook(every_n_steps=100)`": lambda: [tf.staging.StatsHook(every_n_steps=100)],
}
_SECONDS, _ROUNDS = 120, 300
_QUICK_SECONDS, _QUICK_ROUNDS = 0.5, 1


@contextlib.contextmanager
def _stepping() -> Iterator[dict[str, blocks.Step]]:
  """Opens a session that takes a constant from a stage, and gives its steps with each of the hooks.

  It is one session for all, because two equal ones differ by up to 2 %, more than what is measured.
  """
  with tf.Graph().as_default():
    taken = tf.staged(tf.constant(1.0))
    # The session calls what this list holds.
    called = [tf.make_prefetch_hook()]
    with tf.compat.v1.train.MonitoredSession(hooks=called) as session:
      inner = session.run_step_fn(lambda step_context: step_context.session)

      def change_to(those: list[tf.compat.v1.train.SessionRunHook]) -> None:
        for hook in called[1:]:
          hook.end(inner)
        for hook in those:
          hook.after_create_session(inner, None)
        called[1:] = those

      def step_with(those: list[tf.compat.v1.train.SessionRunHook]) -> blocks.Step:

        def step() -> None:
          if called[1:] != those:
            change_to(those)
          session.run(taken)

        return step

      yield {name: step_with(make()) for name, make in _HOOKS.items()}


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--quick", action="store_true", help="measure too little to mean anything")
  quick = parser.parse_args().quick
  # The hook's lines would cost what a terminal or a file takes to write them.
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  watch = quietness.Watch()
  with _stepping() as steps:
    seconds, rounds = (_QUICK_SECONDS, _QUICK_ROUNDS) if quick else (_SECONDS, _ROUNDS)
    costs = blocks.in_turns(steps, seconds, rounds)
  table: list[tuple[str, ...]] = [("hook", "µs per step", "CPU µs per step", "times the time without", report.INTERVAL)]
  for name, values in costs.items():
    cost, ratio = blocks.median(values), blocks.ratio(costs, _BASE, name)
    table.append((name, f"{cost.seconds * 1e6:.1f}", f"{cost.cpu_seconds * 1e6:.1f}", f"{ratio.median:.3f}",
                  report.interval(ratio, digits=3)))
  disturbance = watch.disturbance()
  print(f"""# What live statistics cost

`.venv/bin/python benchmarks/stats_hook.py > benchmarks/stats_hook.md`, one run on {report.machine()}.

{report.markdown(table)}

A step takes a scalar constant from a stage, in a `MonitoredSession` with `tf.make_prefetch_hook()`; nothing is smaller.
A buffer counts and times its waits always. By default, a thread of the hook reads and rates the counters, and the
session does not call the hook in steps; with `every_n_steps`, steps count, and every 100th reports. The hooks take
turns in one session, each for less than 10 s, so the default makes no report meanwhile; in the row with 0.01 s, reports
are a thousand times as frequent. The numbers are medians of {rounds} rounds, and the ratio is the median of theirs,
with its confidence interval. Meanwhile, {disturbance}.""")


if __name__ == "__main__":
  main()
