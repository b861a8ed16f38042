# SPDX-License-Identifier: Apache-2.0
"""Staged runs, puts, takes and the threads of a pool appear in a trace, and takes in the statistics of a run.

core/kernels/buffer_kernels_test.cc tests that an event lasts as long as its op waits.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from tensorflow_staging.python.testing import test_util

_STEPS = 5


def _planes(folder: pathlib.Path) -> Iterator[xplane_pb2.XPlane]:
  """Returns the planes of a trace."""
  path, = folder.glob("**/*.xplane.pb")
  return iter(xplane_pb2.XSpace.FromString(path.read_bytes()).planes)


def _events(folder: pathlib.Path) -> list[tuple[str, str, dict]]:
  """Returns the thread, the name and the facts of each event of a trace that belongs to a stage."""
  found = []
  for plane in _planes(folder):
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
    # The run that made the last record may go on for a moment.
    test_util.wait_until(lambda: tf.staging.stats(sess)[0].waiting_puts == 1)
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


def test_a_trace_names_the_threads_of_a_pool(tmp_path):
  config = tf.ConfigProto()
  config.session_stage_subgraph_thread_pool.add(inter_op_threads_num=2, intra_op_threads_num=1, global_name="readers")
  prepared = tf.add(test_util.dataset_record(100), 1, name="prepared")
  record = tf.staged(prepared, use_stage_subgraph_thread_pool=True)
  with tf.Session(config=config) as sess, tf.make_prefetch_hook().running(sess):
    sess.run(record)
    tf.compat.v2.profiler.experimental.start(str(tmp_path))
    for _ in range(_STEPS):
      sess.run(record)
    tf.compat.v2.profiler.experimental.stop()
  threads = [
      line.name for plane in _planes(tmp_path) for line in plane.lines for event in line.events
      if plane.event_metadata[event.metadata_id].name.startswith("prefetch/region/prepared:")]
  assert len(threads) >= _STEPS - 2
  assert all(name.startswith("tf_readers_inter_op") for name in threads)


def test_the_statistics_of_a_run_have_its_take():
  record = tf.staged(test_util.dataset_record(100), name="ahead")
  metadata = tf.RunMetadata()
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    sess.run(record, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
  nodes = [node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats]
  assert "ahead/TensorBufferTake" in nodes
