# SPDX-License-Identifier: Apache-2.0
"""A model that uses the names of DeepRec's scripts trains to the same losses with and without a stage."""

from tensorflow_staging.python.testing import test_util

# A model as DeepRec's scripts build theirs, trained with and without a stage.
_PROGRAM = """
    import tensorflow as tf
    tf.staging.use_deeprec_names()

    def losses(smartstaged):
      with tf.Graph().as_default():
        tf.set_random_seed(7)
        lines = tf.data.Dataset.from_tensor_slices({
            "user": [f"u{row % 5}" for row in range(40)],
            "tags": ["|".join(f"t{(row + step) % 7}" for step in range(1 + row % 3)) for row in range(40)],
            "clicked": [float(row % 2) for row in range(40)]})
        features = tf.data.make_one_shot_iterator(lines.batch(4)).get_next()
        config = tf.ConfigProto()
        config.intra_op_parallelism_threads = config.inter_op_parallelism_threads = 1
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        hooks = []
        if smartstaged:
          features = tf.staged(features, num_threads=1, capacity=40)
          config.graph_options.optimizer_options.do_smart_stage_gpu = True
          hooks.append(tf.make_prefetch_hook())
        label = features.pop("clicked")
        features["tags"] = tf.strings.split(features["tags"], "|")
        tf.EmbeddingVariableOption(evict_option=None, filter_option=None)
        column = tf.feature_column
        user = column.embedding_column(column.categorical_column_with_hash_bucket("user", 10), 4)
        tags = column.embedding_column(column.sequence_categorical_column_with_hash_bucket("tags", 10), 4)
        users = column.input_layer({"user": features["user"]}, [user])
        rows, lengths = tf.contrib.feature_column.sequence_input_layer({"tags": features["tags"]}, [tags])
        mean = tf.reduce_sum(rows, axis=1) / tf.cast(tf.expand_dims(lengths, 1), tf.float32)
        logits = tf.squeeze(tf.layers.dense(tf.concat([users, mean], 1), 1), 1)
        loss = tf.losses.sigmoid_cross_entropy(label, logits)
        train = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())
        found = []
        with tf.train.MonitoredTrainingSession(config=config, hooks=hooks) as sess:
          while not sess.should_stop():
            found.append(float(sess.run([loss, train])[0]))
        return found

    print(losses(True) == losses(False), len(losses(True)))
    """


def test_the_losses_are_the_same_with_a_stage(tmp_path):
  assert test_util.run_program(_PROGRAM, tmp_path) == "True 10\n"
