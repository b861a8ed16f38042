# SPDX-License-Identifier: Apache-2.0
"""`python -m tensorflow_staging`, and the environment variable, with programs of Keras 3 and of tf_keras."""

import importlib.metadata
import os
import subprocess
import sys

import pytest

_TENSORFLOW = importlib.metadata.version("tensorflow")
_PLUGIN = importlib.metadata.version("tensorflow-staging")
_TRAINS = """
import numpy as np
import tensorflow as tf

words = tf.keras.Input((), dtype="string")
hidden = tf.keras.layers.Embedding(100, 4)(tf.keras.layers.Hashing(100)(words))
model = tf.keras.Model(words, tf.keras.layers.Dense(1)(hidden))
model.compile("sgd", "mse")
data = tf.data.Dataset.from_tensor_slices((list("abcdefgh") * 8, np.arange(64.0))).batch(4)
print(type(model.fit(data, epochs=20, verbose=0)).__module__)
"""
_EAGER = _TRAINS.replace('"mse")', '"mse", run_eagerly=True)')


def _run(folder, *arguments, program=_TRAINS, keras="keras", **environment):
  """Returns what the command prints and what the program says, and its exit status."""
  (folder / "program.py").write_text(program)
  environment = {**os.environ, "TF_USE_LEGACY_KERAS": str(int(keras == "tf_keras")), **environment}
  done = subprocess.run(
      [sys.executable, "-B", *arguments], cwd=folder, capture_output=True, text=True, timeout=200, check=False,
      env=environment)
  said = [line for line in done.stderr.splitlines() if line.startswith("tensorflow_staging: ")]
  assert "tf.staging" not in done.stdout + done.stderr and "tensorflow.staging" not in done.stdout + done.stderr
  return done.stdout.strip(), said, done.returncode


@pytest.mark.parametrize("keras", ["keras", "tf_keras"])
@pytest.mark.parametrize("is_command", [True, False])
def test_each_fit_is_staged_and_the_program_says_so(keras, is_command, tmp_path):
  if is_command:
    printed, said, status = _run(tmp_path, "-m", "tensorflow_staging", "run", "program.py", keras=keras)
  else:
    printed, said, status = _run(tmp_path, "program.py", keras=keras, TF_STAGING_SMART_STAGE="1")
  assert (printed.partition(".")[0], status) == (keras, 0)
  assert said[0] == (
      "tensorflow_staging: SmartStage is on in every fit of this program, by TF_STAGING_SMART_STAGE=1."
      " TF_STAGING_SMART_STAGE=off turns it off.")
  assert said[1].startswith("tensorflow_staging: Stage 'train' has ended after 320 records: it ")
  assert len(said) == 2


def test_the_variable_does_not_change_a_program_that_it_turns_off(tmp_path):
  program = "import tensorflow_staging\ncallback = tensorflow_staging.SmartStage()\n" + _TRAINS.replace(
      "verbose=0", "verbose=0, callbacks=[callback]") + "print(tensorflow_staging.stats(callback))\n"
  printed, said, status = _run(tmp_path, "program.py", program=program, TF_STAGING_SMART_STAGE="off")
  assert printed.endswith("'train' runs without one: TF_STAGING_SMART_STAGE=off.")
  assert (said, status) == ([], 0)


def test_another_value_of_the_variable_is_an_error(tmp_path):
  printed, _, status = _run(tmp_path, "program.py", TF_STAGING_SMART_STAGE="yes")
  assert (printed, status) == ("", 1)
  program = _TRAINS.replace("print(", "try:\n  ")[:-2] + "\nexcept ValueError as error:\n  print(error)\n"
  assert _run(tmp_path, "program.py", program=program, TF_STAGING_SMART_STAGE="yes")[0].startswith(
      "The environment variable TF_STAGING_SMART_STAGE is 'yes'; allowed are '1'")


def test_a_program_of_which_nothing_runs_ahead_says_so(tmp_path):
  _, said, status = _run(tmp_path, "program.py", program=_EAGER, TF_STAGING_SMART_STAGE="1")
  assert said[1].startswith("tensorflow_staging: SmartStage has found nothing to run ahead: ")
  assert "graph" not in said[1] and "session" not in said[1]
  assert status == 0


def test_a_program_without_a_fit_says_what_it_can_do(tmp_path):
  program = "import tensorflow as tf\nimport tensorflow_staging\ntf.constant(1) + 1\n"
  _, said, status = _run(tmp_path, "program.py", program=program, TF_STAGING_SMART_STAGE="1")
  assert "call step = tensorflow_staging.ahead(step)" in said[0]
  assert status == 0


_FEW = ("-m", "tensorflow_staging", "compare", "--rounds", "2", "--warm_up", "20", "--steps", "100", "program.py")


@pytest.mark.timeout(240)
def test_compare_measures_what_smart_stage_gains(tmp_path):
  printed, _, status = _run(tmp_path, *_FEW)
  assert status == 0
  assert "times as fast with SmartStage" in printed and "Stage 'train'" in printed
  assert not any(word in printed for word in ("do_smart_stage", "hook", "graph", "session"))


@pytest.mark.timeout(240)
def test_compare_without_a_stage_names_the_callback(tmp_path):
  printed, _, status = _run(tmp_path, *_FEW, program=_EAGER)
  assert status == 1
  assert "print(tensorflow_staging.explain(callback))" in printed


def test_the_doctor_trains_for_a_moment(tmp_path):
  printed, _, status = _run(tmp_path, "-m", "tensorflow_staging", "doctor")
  assert printed.endswith("No problem found.") and status == 0
  assert f"imported beside tensorflow {_TENSORFLOW}." in printed and "steps got the right records of a stage" in printed


def test_the_version_and_a_wrong_command(tmp_path):
  printed, _, _ = _run(tmp_path, "-m", "tensorflow_staging", "--version")
  assert printed == f"tensorflow_staging {_PLUGIN}, built for tensorflow {_TENSORFLOW}"
  assert _run(tmp_path, "-m", "tensorflow_staging", "explain")[2] == 2
