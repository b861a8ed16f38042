# SPDX-License-Identifier: Apache-2.0
"""Training with SmartStage gives the same losses and variables as without it, to the last bit."""

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import smart_stage_runs

_STEPS = 200
_BATCH = 8


def _dataset() -> tf.data.Dataset:
  numbers = np.random.RandomState(3)
  clicks = numbers.randint(0, 2, 400).astype(np.float32)
  columns = {
      "age": numbers.randint(0, 90, 400).astype(np.float32),
      "city": np.array([f"city{i}" for i in numbers.randint(0, 30, 400)]),
      "words": np.array([f"w{a} w{b}" for a, b in numbers.randint(0, 50, [400, 2])]),
  }
  return tf.data.Dataset.from_tensor_slices((columns, clicks)).shuffle(100, seed=5).repeat().batch(_BATCH)


def _model(features: dict[str, tf.Tensor], clicks: tf.Tensor, use_resource: bool) -> list[tf.Tensor]:
  """Builds an embedding of hashed, crossed and bucketized features, and a dense layer on it."""
  age = tf.raw_ops.Bucketize(input=features["age"], boundaries=[18.0, 30.0, 65.0])
  crossed = tf.strings.join([features["city"], tf.as_string(age)], separator="_x_")
  words = tf.compat.v1.string_split(features["words"])
  word_ids = tf.SparseTensor(
      words.indices, tf.string_to_hash_bucket_fast(words.values, 100), words.dense_shape)
  # Random numbers in the region: each record carries its own draw.
  noise = tf.random.uniform(tf.shape(features["age"]), seed=11) * 0.1
  with tf.variable_scope("model", use_resource=use_resource):
    embedding = tf.get_variable("embedding", [100, 8], initializer=tf.random_normal_initializer(seed=1))
    columns = [
        tf.nn.embedding_lookup(embedding, tf.string_to_hash_bucket_fast(crossed, 100)),
        tf.nn.embedding_lookup_sparse(embedding, word_ids, None, combiner="mean"),
        tf.expand_dims(features["age"] / 90.0 + noise, 1),
    ]
    hidden = tf.concat(columns, axis=1)
    weights = tf.get_variable("weights", [17, 1], initializer=tf.random_normal_initializer(seed=2))
    bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
  # Dropout stays in the step, and draws as often as without a stage.
  hidden = tf.nn.dropout(tf.nn.relu(hidden), rate=0.1, seed=4)
  logits = tf.squeeze(tf.matmul(hidden, weights) + bias, axis=1)
  loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=clicks, logits=logits))
  train = tf.train.AdagradOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())
  with tf.control_dependencies([train]):
    state = [tf.reduce_sum(variable.read_value()) for variable in (embedding, weights)]
  return [loss, *state]


@pytest.mark.parametrize("use_resource", [True, False], ids=["resource", "reference"])
def test_two_hundred_losses_are_equal_to_the_last_bit(use_resource):

  def build():
    features, clicks = tf.data.make_one_shot_iterator(_dataset()).get_next()
    return _model(features, clicks, use_resource)

  staged, types = smart_stage_runs.records(build, True, _STEPS)
  plain, plain_types = smart_stage_runs.records(build, False, _STEPS)
  assert "TensorBufferTake" in types
  assert not {"IteratorGetNext", "StringToHashBucketFast", "StringSplit", "Bucketize"} & set(types)
  assert {"IteratorGetNext", "StringToHashBucketFast"} <= set(plain_types)
  assert len(staged) == len(plain) == _STEPS
  for step, expected in zip(staged, plain):
    assert [value.tobytes() for value in step] == [value.tobytes() for value in expected]
  # The loss must fall; otherwise the test would compare constants.
  assert np.mean([loss for loss, *_ in staged[-20:]]) < 0.9 * np.mean([loss for loss, *_ in staged[:20]])
