# SPDX-License-Identifier: Apache-2.0
"""The environment gives each `fit` of a TensorFlow 2 program the callback, and takes away that of the program."""

import sys

import pytest

from tensorflow_staging.python.testing import test_util

_TRAINS = """
import sys
import tensorflow as tf

callbacks = []

class Sees(tf.keras.callbacks.Callback):
  def on_train_batch_begin(self, batch, logs=None):
    callbacks.append(type(self.model.train_function).__name__)

words = tf.keras.Input((), dtype=tf.string)
hidden = tf.keras.layers.Embedding(9, 2)(tf.keras.layers.Hashing(9)(words))
model = tf.keras.Model(words, tf.keras.layers.Dense(1)(hidden))
model.compile("sgd", "mse")
data = tf.data.Dataset.from_tensor_slices((["a", "b", "c", "d"], [1.0, 2.0, 3.0, 4.0])).batch(2)
model.fit(data, verbose=0, callbacks=[Sees(), *([tf.staging.SmartStage()] if "own" in sys.argv else [])])
model.fit(data, None, None, 1, 0, Sees())
print(callbacks)
"""


def _run(folder, source, *arguments, **environment):
  (folder / "program.py").write_text(source)
  done = test_util.completed([sys.executable, "program.py", *arguments], folder, TF_API_VERSION="2", **environment)
  return done.stdout.strip(), [line for line in done.stderr.splitlines() if line.startswith("tensorflow.staging: ")]


def test_each_fit_is_staged_and_the_program_says_so(tmp_path):
  stdout, said = _run(tmp_path, _TRAINS, TF_STAGING_SMART_STAGE="1")
  assert stdout == str(["ModelStep"] * 4)
  assert said[0].startswith("tensorflow.staging: SmartStage is on in every fit of this program, by TF_STAGING_SMART_")
  assert said[1].startswith("tensorflow.staging: Stage 'train' has ended after 2 records: it ")
  assert len(said) == 3


def test_the_end_counts_all_epochs_and_the_validation(tmp_path):
  source = _TRAINS.replace("verbose=0, callbacks", "epochs=5, validation_data=data, verbose=0, callbacks")
  _, said = _run(tmp_path, source, TF_STAGING_SMART_STAGE="1")
  assert [line.split(":")[1] for line in said[1:]] == [
      f" Stage '{name}' has ended after {records} records"
      for name, records in (("evaluate", 10), ("train", 10), ("train", 2))]


def test_a_fit_with_the_callback_logs_what_it_gained(tmp_path):
  source = _TRAINS.replace("callbacks = []", "callbacks = []\ntf.get_logger().setLevel('INFO')\n")
  source += """
callback = tf.staging.SmartStage()
print(tf.staging.stats(callback))
for epochs in (3, 2):
  model.fit(data, epochs=epochs, verbose=0, callbacks=[callback])
  print([(stage.name, stage.running, stage.taken, stage.put) for stage in tf.staging.stats(callback)])
"""
  (tmp_path / "program.py").write_text(source)
  done = test_util.completed([sys.executable, "program.py"], tmp_path, TF_API_VERSION="2")
  assert done.stdout.splitlines()[1:] == [
      "no stage has run: no fit, evaluate or predict with the callback.", "[('train', False, 6, 6)]",
      "[('train', False, 4, 4)]"]
  logged = [line for line in done.stderr.splitlines() if "has ended after" in line]
  assert [line.split("has ended after ")[1].split(":")[0] for line in logged] == ["6 records", "4 records"]


def test_the_callback_needs_eager_execution(tmp_path):
  (tmp_path / "program.py").write_text("""
import tensorflow as tf
try:
  tf.staging.SmartStage()
except RuntimeError as error:
  print(error)
""")
  done = test_util.completed([sys.executable, "program.py"], tmp_path, TF_API_VERSION="1")
  assert done.stdout.startswith(
      "tf.staging.SmartStage() is for TensorFlow 2, and eager execution is off. This program runs with TensorFlow 1's")
  assert "TF_API_VERSION=2" in done.stdout


def test_the_callback_of_the_program_is_the_only_one(tmp_path):
  stdout, said = _run(tmp_path, _TRAINS, "own", TF_STAGING_SMART_STAGE="1")
  assert stdout == str(["ModelStep"] * 4)
  assert len(said) == 2, said  # The first fit says nothing.


@pytest.mark.parametrize("value", ["", "off"])
def test_without_it_nothing_changes(tmp_path, value):
  stdout, said = _run(tmp_path, _TRAINS, TF_STAGING_SMART_STAGE=value)
  assert stdout == str(["Function"] * 4)
  assert not said


def test_off_takes_the_stage_of_the_program_away(tmp_path):
  source = """
import tensorflow as tf
step = tf.staging.ahead(tf.function(lambda iterator: tf.strings.length(next(iterator))))
print(step(iter(tf.data.Dataset.from_tensors("abc"))).numpy(), step.why_not)
"""
  assert _run(tmp_path, source, TF_STAGING_SMART_STAGE="off")[0] == "3 TF_STAGING_SMART_STAGE=off"
