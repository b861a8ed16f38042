# SPDX-License-Identifier: Apache-2.0
"""What a program can see of its stages: statistics, what they gained, and the report."""

import contextlib

import cases
import compared_loops as loops
import tensorflow as tf


def case_statistics():
  wrapped = tf.staging.ahead(
      tf.function(lambda iterator: tf.strings.to_number(next(iterator))), capacity=3, num_threads=1, name="s")
  assert tf.staging.stats(wrapped) == []
  iterator = iter(loops.numbers(["1", "2"]).repeat())
  for _ in range(5):
    wrapped(iterator)
  stats, = tf.staging.stats(wrapped)
  assert (stats.name, stats.taken, stats.capacity, stats.num_threads, stats.running) == ("s", 5, 3, 1, True), stats
  assert stats.keeps_order and "any order" not in str(stats), stats
  wrapped.stop()
  assert tf.staging.stats(wrapped) == []


def case_the_statistics_say_what_the_stage_gained():
  total = tf.Variable(0, dtype=tf.int64)

  @tf.function
  def step(iterator):
    number = tf.strings.length(tf.strings.as_string(next(iterator) * 2))
    total.assign_add(tf.cast(number, tf.int64))
    return number

  wrapped = tf.staging.ahead(step, capacity=4)
  iterator = iter(tf.data.Dataset.range(10**9))
  # The last run may not have been timed yet, and a long wait of it for room have been counted.
  for _ in range(20):
    for _ in range(300):
      wrapped(iterator)
    stats, = tf.staging.stats(wrapped)
    if stats.region.count >= 300 and stats.region.total_seconds > 0:
      break
  assert stats.region.count >= 300 and stats.region.total_seconds > 0, stats.region
  assert "too few to say" not in str(stats), stats


def case_explain_says_what_runs_ahead():
  @tf.function
  def step(iterator):
    return tf.gather(weights, tf.strings.to_hash_bucket_fast(next(iterator), 9))

  weights = tf.Variable(tf.zeros([9]))
  wrapped = tf.staging.ahead(step, capacity=2)
  assert "not been called" in str(tf.staging.explain(wrapped))
  with contextlib.suppress(tf.errors.OutOfRangeError):
    wrapped(iter(loops.words().filter(lambda _: False)))
  assert "Where a record waits for the step is known once the step has run." in str(tf.staging.explain(wrapped))
  wrapped(iter(loops.words()))
  explained, = tf.staging.explain(wrapped).steps
  assert "StringToHashBucketFast" in explained.nodes
  tensor, = explained.boundary
  assert (tensor.dtype, tensor.shape.rank) == (tf.int64, 1)
  assert any("Variable" in node.why for node in explained.outside), explained.outside
  assert "2 nodes run ahead, and a record carries 1 tensor" in str(explained)
  assert [(part.device, part.tensors) for part in explained.parts] == [("host", (tensor,))], explained.parts
  assert "A record waits for the step in host memory." in str(explained)
  total = tf.Variable(0.0)
  unstaged = tf.staging.ahead(tf.function(lambda iterator: total.assign_add(next(iterator))))
  unstaged(iter(tf.data.Dataset.from_tensors(1.0)))
  assert "runs without a stage: nothing" in str(tf.staging.explain(unstaged))


if __name__ == "__main__":
  cases.main(globals())
