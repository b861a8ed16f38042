# SPDX-License-Identifier: Apache-2.0
"""Staged runs, puts and takes appear in a profiler's trace, and takes in the statistics of a run.

core/kernels/trace_test.cc tests that an event lasts as long as its op waits.
"""

import pathlib

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from tensorflow_staging.python.testing import test_util

_STEPS = 5


def _events(folder: pathlib.Path) -> list[tuple[str, str, dict]]:
  """Returns the thread, the name and the facts of each event of a trace that belongs to a stage."""
  path, = folder.glob("**/*.xplane.pb")
  found = []
  for plane in xplane_pb2.XSpace.FromString(path.read_bytes()).planes:
    for line in plane.lines:
      for event in line.events:
        facts = {plane.stat_metadata[stat.metadata_id].name: _value(plane, stat) for stat in event.stats}
        if "stage" in facts:
          found.append((line.name, plane.event_metadata[event.metadata_id].name, facts))
  return found


def _value(plane: xplane_pb2.XPlane, stat: xplane_pb2.XStat) -> str | int:
  kind = stat.WhichOneof("value")
  return plane.stat_metadata[stat.ref_value].name if kind == "ref_value" else getattr(stat, kind)


def test_a_trace_shows_each_staged_run_and_the_records_of_each_put_and_take(tmp_path):
  record = tf.staged(test_util.dataset_record(100), capacity=2, name="ahead")
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    sess.run(record)
    tf.compat.v2.profiler.experimental.start(str(tmp_path))
    for _ in range(_STEPS):
      sess.run(record)
    tf.compat.v2.profiler.experimental.stop()
  events = _events(tmp_path)
  assert {facts["stage"] for _, _, facts in events} == {"ahead"}
  assert {facts["records"] for _, _, facts in events if "records" in facts} <= {0, 1, 2}
  names = [name for _, name, _ in events]
  assert names.count("TensorBufferTake") == _STEPS
  # When the trace began, the buffer had at most two records, and at most one put waited.
  assert names.count("TensorBufferPut") >= _STEPS - 3
  assert names.count("StagedRun") >= _STEPS - 3
  assert all(thread.startswith("ahead_prefetch_0") for thread, name, _ in events if name == "StagedRun")


def test_the_statistics_of_a_run_have_its_take():
  record = tf.staged(test_util.dataset_record(100), name="ahead")
  metadata = tf.RunMetadata()
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    sess.run(record, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
  nodes = [node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats]
  assert "ahead/TensorBufferTake" in nodes
