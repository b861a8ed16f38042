# SPDX-License-Identifier: Apache-2.0
"""Training that checks that each record comes exactly once and in order; killed_training_test.py kills it.

The n-th record of the data is the number n. The step fails unless its record is the number of records before it,
which is a variable, and so in the checkpoint. A restart that loses or repeats a record therefore ends the training.

Usage: killed_training.py FOLDER RECORDS THREADS
"""

import sys

import tensorflow as tf

_CAPACITY = 8
_STEPS_PER_CHECKPOINT = 7


def main(folder: str, records: int, threads: int) -> None:
  dataset = tf.data.Dataset.range(records).map(tf.strings.as_string, num_parallel_calls=2).prefetch(3)
  iterator = tf.data.make_initializable_iterator(dataset)
  # As for the iterators of Estimators: initialised with the tables, which is after the restore.
  tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
  number = tf.strings.to_number(iterator.get_next(), tf.int64)
  count = tf.get_variable("count", initializer=tf.zeros([], tf.int64), trainable=False)
  # With one producer, records come in order; with more, each comes once.
  seen = tf.get_variable("seen", initializer=tf.zeros([records], tf.int64), trainable=False)
  expected = tf.assert_equal(number, count) if threads == 1 else tf.no_op()
  with tf.control_dependencies([expected]):
    mark = tf.scatter_add(seen, number, tf.ones([], tf.int64))
  with tf.control_dependencies([tf.assert_less(mark, tf.constant(2, tf.int64))]):
    train = tf.group(tf.assign_add(count, 1), tf.assign_add(tf.train.get_or_create_global_step(), 1))
  tf.staging.save_iterators(iterator)

  config = tf.ConfigProto()
  optimizer_options = config.graph_options.optimizer_options
  optimizer_options.do_smart_stage = True
  optimizer_options.smart_stage_options.CopyFrom(tf.SmartStageOptions(capacity=_CAPACITY, num_threads=threads))
  with tf.train.MonitoredTrainingSession(
      checkpoint_dir=folder, hooks=[tf.make_prefetch_hook()], config=config, save_summaries_steps=None,
      save_checkpoint_secs=None, save_checkpoint_steps=_STEPS_PER_CHECKPOINT) as sess:
    print("resumes", sess.run(count), flush=True)
    while not sess.should_stop():
      print("step", flush=True)
      sess.run(train)
  reader = tf.train.load_checkpoint(folder)
  seen = reader.get_tensor("seen")
  print("done", reader.get_tensor("count"), seen.min(), seen.max(), flush=True)


if __name__ == "__main__":
  main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
