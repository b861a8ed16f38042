# SPDX-License-Identifier: Apache-2.0
"""Trains a model that predicts clicks, without and with SmartStage, draws what was staged, and says what it gained."""

import random
import time

import tensorflow as tf

ROWS, BATCH, STEPS, WORDS = 20_000, 512, 200, 5_000


def write_clicks(path):
  """Writes rows of a user, 24 words and whether the user clicked, which some of the words decide."""
  random.seed(1)
  with open(path, "w") as file:
    for _ in range(ROWS):
      words = [random.randrange(WORDS) for _ in range(24)]
      clicked = sum(1 if word % 5 == 0 else -0.25 for word in words) > random.gauss(0, 1)
      file.write(f"user{random.randrange(1000)},{' '.join(f'Word{word}' for word in words)},{int(clicked)}\n")


def model(lines):
  """Returns the loss of a model that parses, cleans and hashes lines of text by itself."""
  user, text, clicked = tf.decode_csv(lines, [[""], [""], [0]])
  cleaned = tf.strings.regex_replace(tf.strings.lower(text), "[^a-z0-9 ]", "")
  words = tf.sparse.to_dense(tf.string_split(cleaned), default_value="")
  users = tf.tile(user[:, None], [1, tf.shape(words)[1]])
  pairs = tf.strings.join([users, words], "_")
  ids = tf.strings.to_hash_bucket_fast(tf.concat([words, pairs], 1), 20_000)

  table = tf.get_variable("table", [20_000, 8])
  vectors = tf.reduce_sum(tf.nn.embedding_lookup(table, ids), 1)
  output = tf.get_variable("output", [8])
  logits = tf.reduce_sum(vectors * output, 1)
  return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.to_float(clicked), logits=logits))


def train(smart_stage):
  """Trains from the beginning; returns the steps per second and the first and last losses."""
  with tf.Graph().as_default():
    tf.set_random_seed(1)
    dataset = tf.data.TextLineDataset("clicks.csv").repeat().batch(BATCH, drop_remainder=True)
    loss = model(tf.data.make_one_shot_iterator(dataset).get_next())
    train_op = tf.train.AdagradOptimizer(0.3).minimize(loss, tf.train.get_or_create_global_step())

    config = tf.ConfigProto()
    if smart_stage:
      config.graph_options.optimizer_options.do_smart_stage = True
      config.graph_options.optimizer_options.smart_stage_options.CopyFrom(tf.SmartStageOptions(capacity=4))
      report = tf.staging.explain(config=config)
      report.save_svg("staged.svg")
      print(str(report).splitlines()[0])

    with tf.train.MonitoredTrainingSession(config=config, hooks=[tf.make_prefetch_hook()]) as sess:
      first, _ = sess.run([loss, train_op])
      begin = time.time()
      for _ in range(STEPS):
        last, _ = sess.run([loss, train_op])
      seconds = time.time() - begin
      for stage in tf.staging.stats(sess):
        waits = stage.take_wait.total_seconds / seconds
        print(f"Stage '{stage.name}': {stage.taken} records taken; steps waited for them {waits:.0%} of the time")
      return STEPS / seconds, first, last


tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
write_clicks("clicks.csv")
plain, *losses = train(smart_stage=False)
print(f"without SmartStage: {plain:.1f} steps/s, loss {losses[0]:.3f} to {losses[1]:.3f}")
staged, *losses = train(smart_stage=True)
print(f"with SmartStage:    {staged:.1f} steps/s, loss {losses[0]:.3f} to {losses[1]:.3f}")
print(f"SmartStage made training {staged / plain:.2f} times as fast; staged.svg shows what it staged.")
