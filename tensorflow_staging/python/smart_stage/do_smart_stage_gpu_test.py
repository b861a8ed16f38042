# SPDX-License-Identifier: Apache-2.0
"""`do_smart_stage_gpu`, the older name in scripts for DeepRec, turns SmartStage on."""

import tensorflow as tf


def _model():
  features = tf.data.make_one_shot_iterator(tf.data.Dataset.range(9).batch(3)).get_next()
  loss = tf.reduce_sum(tf.nn.embedding_lookup(tf.get_variable("table", [9, 2]), features % 9))
  return loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)


def _config():
  config = tf.ConfigProto()
  config.graph_options.optimizer_options.do_smart_stage_gpu = True
  return config


def test_a_stage_runs():
  loss, train = _model()
  with tf.Session(config=_config()) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      sess.run([loss, train])
      assert [stage.name for stage in tf.staging.stats(sess)] == ["prefetch"]


def test_the_report_says_that_it_is_on():
  _model()
  report = tf.staging.explain(config=_config())
  assert report.enabled and report.stages
