# SPDX-License-Identifier: Apache-2.0
"""A session says that it found nothing to run ahead if its graph trains or reads, and not if it only serves."""

import pytest

_WARNINGS = {"smart": "SmartStage found nothing to run ahead", "lookups": "Async embedding found no lookup"}

_CONFIG = """
    import tensorflow as tf
    config = tf.ConfigProto()
    options = config.graph_options.optimizer_options
    options.do_smart_stage = {smart}
    options.do_async_embedding = {lookups}
    options.async_embedding_options.capacity = options.async_embedding_options.threads_num = 1
    """

_GRAPHS = {
    # As an export of a trained model, which is loaded with the training's configuration.
    "serving": """
    features = tf.placeholder(tf.float32, [None, 3])
    weights = tf.get_variable("weights", [3, 1])
    fetched = tf.matmul(features, weights)
    feed = {features: [[1.0, 2.0, 3.0]]}
    saver = tf.train.Saver()
    """,
    "training": """
    features = tf.placeholder(tf.float32, [None, 3])
    weights = tf.get_variable("weights", [3, 1])
    loss = tf.reduce_sum(tf.matmul(features, weights))
    fetched = [loss, tf.train.AdamOptimizer().minimize(loss)]
    feed = {features: [[1.0, 2.0, 3.0]]}
    """,
    "reading": """
    iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(3))
    fetched = iterator.get_next()
    feed = {}
    """,
}

_RUN = """
    import sys
    sys.stdout.flush()
    import os
    os.dup2(1, 2)
    with tf.Session(config=config) as sess:
      sess.run(tf.global_variables_initializer())
      sess.run(fetched, feed)
    """


@pytest.mark.parametrize("kind", _WARNINGS)
@pytest.mark.parametrize("graph", _GRAPHS)
def test_only_a_graph_that_trains_or_reads_is_warned_of(run_forked, tmp_path, kind, graph):
  config = _CONFIG.format(smart=kind == "smart", lookups=kind == "lookups")
  assert (_WARNINGS[kind] in run_forked(config + _GRAPHS[graph] + _RUN, tmp_path)) == (graph != "serving")
