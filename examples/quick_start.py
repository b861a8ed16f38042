# SPDX-License-Identifier: Apache-2.0
"""Trains a model that predicts clicks without and with SmartStage, by turns, and says what SmartStage gained."""

import contextlib
import random
import shutil
import statistics
import time

import tensorflow as tf

ROWS, BATCH, STEPS, ROUNDS, WORDS = 20_000, 128, 100, 12, 5_000


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
  hidden = tf.nn.relu(tf.matmul(vectors, tf.get_variable("first", [8, 256])))
  hidden = tf.nn.relu(tf.matmul(hidden, tf.get_variable("second", [256, 256])))
  logits = tf.matmul(hidden, tf.get_variable("output", [256, 1]))[:, 0]
  return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.to_float(clicked), logits=logits))


@contextlib.contextmanager
def training(smart_stage):
  """Yields a function that trains for some steps and returns their seconds and the last loss."""
  with tf.Graph().as_default():
    tf.set_random_seed(1)
    dataset = tf.data.TextLineDataset("clicks.csv").repeat().batch(BATCH, drop_remainder=True)
    loss = model(tf.data.make_one_shot_iterator(dataset).get_next())
    train_op = tf.train.AdagradOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())

    config = tf.ConfigProto()
    if smart_stage:
      config.graph_options.optimizer_options.do_smart_stage = True
      report = tf.staging.explain(config=config)
      if shutil.which("dot"):  # Graphviz draws the picture.
        report.save_svg("staged.svg")
      print(str(report).splitlines()[0])

    with tf.train.MonitoredTrainingSession(config=config, hooks=[tf.make_prefetch_hook()]) as sess:

      def train(steps):
        begin = time.time()
        for _ in range(steps):
          last, _ = sess.run([loss, train_op])
        return (time.time() - begin) / steps, last

      yield train


def core_times():
  """Returns for how long all cores of this machine have been idle, and for how long they have existed."""
  with open("/proc/stat") as file:
    times = [int(part) for part in file.readline().split()[1:9]]
  return times[3] + times[4], sum(times)


def verdict(low, high, idle):
  if low > 1:
    return "A gain: the stage prepares the next records while a step computes."
  if high < 1:
    return "A loss. Please look at docs/tuning.md, and report it if that does not explain it."
  if idle < 0.15:
    return "No clear gain: a stage fills idle time, and there was little. Does something else run on this machine?"
  return "No clear gain in so few rounds: raise ROUNDS, or let nothing else run on this machine."


tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
write_clicks("clicks.csv")
with training(smart_stage=False) as train_plain, training(smart_stage=True) as train_staged:
  train_plain(STEPS), train_staged(STEPS)  # The first steps are not counted.
  rounds, idle, total = [], 0, 0
  for _ in range(ROUNDS):  # By turns, so that both see the same machine.
    before = core_times()
    plain, plain_loss = train_plain(STEPS)
    after = core_times()
    staged, staged_loss = train_staged(STEPS)
    rounds.append((plain, staged))
    idle, total = idle + after[0] - before[0], total + after[1] - before[1]

plain, staged = (statistics.median(round_[way] for round_ in rounds) * 1000 for way in (0, 1))
ratios = sorted(plain / staged for plain, staged in rounds)
low, high, idle = ratios[1], ratios[-2], idle / max(total, 1)
print(f"without SmartStage: {plain:.2f} ms a step, loss {plain_loss:.4f}; the cores were idle {idle:.0%} of the time")
print(f"with SmartStage:    {staged:.2f} ms a step, loss {staged_loss:.4f}")
print(f"{statistics.median(ratios):.2f} times as fast ({low:.2f} to {high:.2f} in {ROUNDS - 2} of {ROUNDS} rounds)")
print(verdict(low, high, idle))
