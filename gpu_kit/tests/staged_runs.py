# SPDX-License-Identifier: Apache-2.0
"""Runs a step of a session in the ways in which its input can be staged."""

import tensorflow as tf

STEPS = 40
WAYS = ["tf.staged", "SmartStage"]


def config(way: str, on_cpu: bool) -> tf.ConfigProto:
  """Returns the configuration of a session, with SmartStage if that is the way."""
  of_session = tf.ConfigProto()
  options = of_session.graph_options.optimizer_options
  options.stage_subgraph_on_cpu = on_cpu
  if way == "SmartStage":
    options.do_smart_stage = True
    options.smart_stage_options.CopyFrom(tf.SmartStageOptions(capacity=4))
  return of_session


def staged(way: str, features):
  """Returns the features, behind a stage if `tf.staged` is the way."""
  return tf.staged(features, capacity=4) if way == "tf.staged" else features


def values(step, of_session: tf.ConfigProto) -> list:
  """Returns what each of `STEPS` steps yields in a new session."""
  with tf.Session(config=of_session) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      return [sess.run(step) for _ in range(STEPS)]
