# SPDX-License-Identifier: Apache-2.0
"""Stages that stop and start again in their session go on with the next record, whatever their source."""

import threading
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.stats import stage_stats
from tensorflow_staging.python.testing import stage_kinds
from tensorflow_staging.python.testing import test_util

_RECORDS = 60
_STEPS_BETWEEN_STOPS = 3


def _one_shot_iterator() -> tf.Tensor:
  return test_util.dataset_record(_RECORDS)


def _queue() -> tf.Tensor:
  queue = tf.FIFOQueue(_RECORDS, [tf.int64], [[]])
  tf.add_to_collection("before", queue.enqueue_many([np.arange(_RECORDS)]))
  tf.add_to_collection("before", queue.close())
  return queue.dequeue()


def _take_all(sess, step, in_order: bool) -> list[int]:
  """Takes records to the end of the data, while the stages stop and start again after every few steps."""
  taken = []
  while True:
    with tf.make_prefetch_hook().running(sess):
      for _ in range(_STEPS_BETWEEN_STOPS):
        try:
          taken.append(int(sess.run(step)))
        except tf.errors.OutOfRangeError:
          return taken if in_order else sorted(taken)


@stage_kinds.BOTH
@pytest.mark.parametrize("producers", [1, 4])
@pytest.mark.parametrize("source", [_one_shot_iterator, _queue])
def test_no_record_is_lost(source, producers, smart_stage):
  step, config = stage_kinds.stage(source(), smart_stage, capacity=1, num_threads=producers)
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    for op in tf.get_collection("before"):
      sess.run(op)
    assert _take_all(sess, step, in_order=producers == 1) == list(range(_RECORDS))


def test_no_record_of_a_server_is_lost():
  step, config = stage_kinds.stage(_one_shot_iterator(), smart_stage=True, capacity=1)
  server = tf.train.Server.create_local_server()
  with tf.Session(server.target, config=config) as sess:
    sess.run(tf.global_variables_initializer())
    assert _take_all(sess, step, in_order=True) == list(range(_RECORDS))


def test_no_record_of_a_generator_is_lost():
  number = tf.placeholder(tf.int64, [])
  step = tf.staged(number, feed_list=[number], feed_generator=([i] for i in range(_RECORDS)), capacity=1)
  with tf.Session() as sess:
    assert _take_all(sess, step, in_order=True) == list(range(_RECORDS))


def test_no_record_of_a_chain_is_lost():
  first = tf.staged(_one_shot_iterator(), capacity=1, name="first")
  step = tf.staged(first + 0, capacity=1, name="second")
  with tf.Session() as sess:
    assert _take_all(sess, step, in_order=True) == list(range(_RECORDS))


def test_no_record_of_a_join_is_lost():
  odd, even = (test_util.dataset_record(_RECORDS // 2) * 2 + i for i in (1, 0))
  step = tf.prefetch_join([odd, even], capacity=1)
  with tf.Session() as sess:
    assert _take_all(sess, step, in_order=False) == list(range(_RECORDS))


def _stats(sess, name: str) -> stage_stats.StageStats:
  stage, = (stage for stage in tf.staging.stats(sess) if stage.name == name)
  return stage


def _pair_of_stages() -> tuple[test_util.Source, tf.Tensor]:
  """Returns the source of one of two stages whose records a third one pairs, and these pairs."""
  source = test_util.Source()
  left = tf.staged(test_util.dataset_record(1000), capacity=1, name="left")
  right = tf.staged(source.tensor(), capacity=1, name="right")
  return source, tf.staged(tf.stack([left, right]), capacity=1, name="pair")


def test_the_records_of_two_stages_stay_together():
  _, pair = _pair_of_stages()
  taken = []
  with tf.Session() as sess:
    for _ in range(10):
      with tf.make_prefetch_hook().running(sess):
        taken.extend(sess.run(pair).tolist() for _ in range(_STEPS_BETWEEN_STOPS))
  assert taken == [[i, i] for i in range(len(taken))]


def test_a_run_that_waits_for_its_second_record_gets_it_before_its_stages_stop():
  source, pair = _pair_of_stages()
  hook = tf.make_prefetch_hook()
  with tf.Session() as sess:
    hook.after_create_session(sess)
    assert sess.run(pair).tolist() == [0, 0]
    source.hold()
    taken = []

    def only_a_left_record_is_on_its_way() -> bool:
      if _stats(sess, "pair").records:
        taken.append(sess.run(pair).tolist())
      return _stats(sess, "right").waiting_takes == 1 and _stats(sess, "pair").records == 0

    test_util.wait_until(only_a_left_record_is_on_its_way)
    stopping = threading.Thread(target=hook.end, args=[sess])
    stopping.start()
    test_util.wait_until(lambda: tf.staging.stats(sess) == [])
    source.release()
    stopping.join()
    with hook.running(sess):
      taken.extend(sess.run(pair).tolist() for _ in range(5))
  assert taken == [[i, i] for i in range(1, len(taken) + 1)]


def test_a_chain_whose_source_hangs_stops_in_time():
  first = tf.staged(tf.FIFOQueue(1, [tf.int64]).dequeue(), name="first")
  tf.staged(tf.staged(first, name="second"), name="third")
  hook = tf.make_prefetch_hook()
  with tf.Session() as sess:
    hook.after_create_session(sess)
    began = time.monotonic()
    hook.end(sess)
    assert time.monotonic() - began < 5
  test_util.assert_no_stage_thread()
