#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what TensorFlow's profiler records of a program with a stage, for docs/staged.md.

`.venv/bin/python benchmarks/trace.py --picture=docs/trace.svg` takes a few seconds.
"""

from __future__ import annotations

import argparse
import collections
import html
import pathlib
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf
from lib import svg
from tensorflow.tsl.profiler.protobuf import xplane_pb2

tf1 = tf.compat.v1

_WARM_UP_STEPS = 20
_STEPS = 6
_LEFT = 10
_WIDTH = 400
_ROW = 40
_TOP = 78
# Shorter events would be invisible.
_SHORTEST_MILLIS = 0.05
_STAGE, _STEP, _WAIT = "#5a9e5f", "#3d7fb8", "#e8a33d"


class Event(NamedTuple):
  """What a thread did, in milliseconds since the first step of the trace."""

  thread: str
  name: str
  begin: float
  end: float


def _train(folder: str) -> None:
  """Trains for some steps, the last of which the profiler records."""
  with tf.Graph().as_default():
    number = tf1.data.make_one_shot_iterator(tf1.data.Dataset.range(1000)).get_next()
    words = tf.strings.as_string(tf.range(60_000, dtype=tf.int64) + number)
    ids = tf.strings.to_hash_bucket_fast(words, 1000)
    weights = tf1.get_variable("weights", [500, 500])
    features = tf.reshape(tf.cast(ids, tf.float32), [-1, 500])
    loss = tf.reduce_mean(tf.matmul(tf.matmul(features, weights), tf.matmul(weights, weights)))
    train_op = tf1.train.GradientDescentOptimizer(1e-12).minimize(loss)
    config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=2)
    config.graph_options.optimizer_options.do_smart_stage = True
    with tf1.Session(config=config) as sess:
      sess.run(tf1.global_variables_initializer())
      with tf.make_prefetch_hook().running(sess):
        for _ in range(_WARM_UP_STEPS):
          sess.run(train_op)
        tf.compat.v2.profiler.experimental.start(folder)
        for _ in range(_STEPS):
          sess.run(train_op)
        tf.compat.v2.profiler.experimental.stop()


def _events(folder: str) -> Iterator[Event]:
  """Yields the events of the threads of the program."""
  path, = pathlib.Path(folder).glob("**/*.xplane.pb")
  plane = next(each for each in xplane_pb2.XSpace.FromString(path.read_bytes()).planes if each.name == "/host:CPU")
  first = min(line.timestamp_ns for line in plane.lines)
  numbers = collections.Counter()
  for line in plane.lines:
    # The name of a thread, and a number that says nothing.
    thread = line.name.partition("/")[0]
    numbers[thread] += 1
    if thread == "tf_Compute":
      thread += f" {numbers[thread]}"
    offset = (line.timestamp_ns - first) * 1e-6
    for event in line.events:
      begin = offset + event.offset_ps * 1e-9
      name = plane.event_metadata[event.metadata_id].name
      yield Event(thread, name, begin, begin + event.duration_ps * 1e-9)


def _colour(event: Event) -> str | None:
  """Returns the colour of an event; None for those that the picture leaves out."""
  if event.name in ("TensorBufferPut", "TensorBufferTake"):
    return _WAIT
  if event.name == "StagedRun" or event.name.startswith("prefetch/staged/"):
    return _STAGE
  if event.name == "SessionRun" and event.thread == "python":
    return _STEP
  return _STEP if ":" in event.name and "::" not in event.name and "prefetch/" not in event.name else None


def _picture(events: list[Event]) -> str:
  shown = [(event, colour) for event in events if (colour := _colour(event))]
  steps = [event for event, _ in shown if event.name == "SessionRun"]
  begin, end = steps[1].begin, steps[-1].end
  scale = _WIDTH / (end - begin)
  threads = ["python", *sorted({event.thread for event, _ in shown} - {"python"})]
  shapes = []
  for i, thread in enumerate(threads):
    y = _TOP + _ROW * i
    shapes.append(f'<text x="{_LEFT}" y="{y + 12}">{html.escape(thread)}</text>')
    # Long events first, so that those within them are on top.
    of_thread = [each for each in shown if each[0].thread == thread]
    for event, colour in sorted(of_thread, key=lambda each: each[0].begin - each[0].end):
      left, right = max(event.begin, begin), min(event.end, end)
      if right - left < _SHORTEST_MILLIS:
        continue
      shapes.append(
          f'<rect x="{_LEFT + scale * (left - begin):.1f}" y="{y + 17}" width="{scale * (right - left):.1f}"'
          f' height="18" fill="{colour}">'
          f"<title>{html.escape(event.name)}, {event.end - event.begin:.2f} ms</title></rect>")
  bottom = _TOP + _ROW * len(threads)
  for millis in range(0, int(end - begin) + 1, max(1, int(end - begin) // 5)):
    x = _LEFT + scale * millis
    shapes.insert(0, f'<path class="grid" d="M{x:.1f} {_TOP}V{bottom + 4}"/>')
    anchor = "start" if millis == 0 else "end" if x > _LEFT + _WIDTH - 30 else "middle"
    shapes.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="{anchor}">{millis} ms</text>')
  keys = (("the step", _STEP), ("the stage", _STAGE), ("a put or take that waits", _WAIT))
  for i, (text, colour) in enumerate(keys):
    x, y = (_LEFT + 140 * i, 12) if i < 2 else (_LEFT, 36)
    shapes.append(f'<rect x="{x}" y="{y}" width="14" height="14" fill="{colour}"/>')
    shapes.append(f'<text x="{x + 20}" y="{y + 12}">{text}</text>')
  return svg.document("A trace: the stage prepares records while the program runs steps.", bottom + 30, shapes)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--picture", type=pathlib.Path, required=True, help="the SVG to write")
  arguments = parser.parse_args()
  with tempfile.TemporaryDirectory() as folder:
    _train(folder)
    arguments.picture.write_text(_picture(list(_events(folder))))


if __name__ == "__main__":
  main()
