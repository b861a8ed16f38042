# SPDX-License-Identifier: Apache-2.0
"""Trains a Keras 3 model without and with SmartStage beside an official TensorFlow, and compares losses and speed.

The model itself splits texts and looks up words and their pairs, which takes about as long as the rest of a step.
tf.data cannot read that ahead. Without a stage, one follows the other; with it, the texts of the next steps are split
while a step computes, on a core that would have been idle.
"""

import os
import random
import statistics
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf

import tensorflow_staging

ROWS, BATCH, STEPS, EPOCHS, ROUNDS = 6_400, 128, 50, 4, 3
WORDS = [f"word{i}" for i in range(2_000)]


def write_reviews(path: str) -> None:
  """Writes lines of a text and whether its reader liked it, which some of the words decide."""
  random.seed(1)
  with open(path, "w", encoding="utf-8") as file:
    for _ in range(ROWS):
      words = random.choices(range(len(WORDS)), k=200)
      liked = sum(1 if word % 5 == 0 else -0.25 for word in words) > random.gauss(0, 1)
      file.write(f"{' '.join(WORDS[word].title() for word in words)},{int(liked)}\n")


def new_model() -> keras.Model:
  """Returns a model that splits texts and looks up their words by itself; its weights are the same each time."""
  keras.utils.set_random_seed(1)
  model = keras.Sequential([
      keras.Input((), dtype="string"),
      keras.layers.TextVectorization(vocabulary=WORDS, output_mode="multi_hot", ngrams=2),
      keras.layers.Dense(128, "relu"),
      keras.layers.Dense(1, "sigmoid"),
  ])
  model.compile("adam", "binary_crossentropy")
  return model


class EpochTimes(keras.callbacks.Callback):
  """Notes the milliseconds of a step in each epoch but the first, in which functions are traced."""

  def __init__(self):
    super().__init__()
    self.milliseconds = []

  def on_epoch_begin(self, epoch, logs=None):
    self._begin = time.perf_counter()

  def on_epoch_end(self, epoch, logs=None):
    if epoch > 0:
      self.milliseconds.append((time.perf_counter() - self._begin) * 1000 / STEPS)


def fit(path: str, callbacks: list) -> tuple[list[float], list[float]]:
  """Returns the losses of a new model in each epoch, and the milliseconds of a step."""
  data = tf.data.TextLineDataset(path).batch(BATCH).repeat()
  data = data.map(lambda lines: tf.io.decode_csv(lines, [[""], [0.0]]))
  times = EpochTimes()
  history = new_model().fit(
      data, epochs=EPOCHS, steps_per_epoch=STEPS, shuffle=False, verbose=0, callbacks=[*callbacks, times]).history
  return history["loss"], times.milliseconds


def main() -> None:
  steps: dict[bool, list[float]] = {False: [], True: []}
  losses: dict[bool, list[float]] = {}
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "reviews.csv")
    write_reviews(path)
    for _ in range(ROUNDS):
      for is_staged, milliseconds in steps.items():  # By turns, so that both see the same machine.
        callbacks = [tensorflow_staging.SmartStage()] if is_staged else []
        losses[is_staged], times = fit(path, callbacks)
        milliseconds += times
  ahead = str(tensorflow_staging.explain(*callbacks)).splitlines()[0]
  print(f"TensorFlow {tf.__version__}, Keras {keras.__version__}; {ahead}")
  for is_staged, name in ((False, "without SmartStage:"), (True, "with SmartStage:")):
    shown = " ".join(f"{loss:.4f}" for loss in losses[is_staged])
    print(f"{name:20}{statistics.median(steps[is_staged]):5.2f} ms a step, losses of the epochs {shown}")
  assert losses[False] == losses[True]
  gain = statistics.median(steps[False]) / statistics.median(steps[True])
  print(f"The losses are equal to the bit, and training is {gain:.2f} times as fast.")


if __name__ == "__main__":
  main()
