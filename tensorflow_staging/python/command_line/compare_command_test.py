# SPDX-License-Identifier: Apache-2.0
"""`python -m tensorflow.staging compare` says what SmartStage gains a program, or why it cannot."""

import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

from tensorflow_staging.python.command_line import compare_command
from tensorflow_staging.python.command_line import main
from tensorflow_staging.python.testing import test_util

# Waits for each record, and in each step.
_TRAINS = """
import sys, time
import tensorflow as tf

def wait(number):
  time.sleep(0.01)
  return number

number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1000)).get_next()
record = tf.numpy_function(wait, [number], tf.int64)
record.set_shape([])
total = tf.get_variable("total", initializer=tf.constant(0, tf.int64), use_resource=True)
with tf.control_dependencies([tf.numpy_function(wait, [total.assign_add(record)], tf.int64)]):
  train_op = tf.train.get_or_create_global_step().assign_add(1)
"""
_MONITORED = _TRAINS + """
with tf.train.MonitoredTrainingSession(checkpoint_dir=sys.argv[1]) as sess:
  while True:
    sess.run(train_op)
"""


# Waits for each batch, and in each step.
_FITS = """
import sys, time
import tensorflow as tf

def wait(number):
  time.sleep(0.01)
  return number

class Waits(tf.keras.layers.Layer):
  def call(self, numbers):
    waited = tf.numpy_function(wait, [numbers], tf.float32, stateful=False)
    return tf.ensure_shape(waited, numbers.shape)

numbers = tf.keras.Input((1,))
model = tf.keras.Model(numbers, tf.keras.layers.Dense(1)(Waits()(numbers)))

def loss(label, output):
  with tf.control_dependencies([tf.numpy_function(wait, [output], tf.float32)]):
    return tf.reduce_mean(label - output)

model.compile("sgd", loss)
data = tf.data.Dataset.from_tensors(([[1.0]], [[2.0]])).repeat(10)
model.fit(data, epochs=1000, verbose=0)
"""


def _compare(folder: pathlib.Path, source: str, *options: str, **environment: str) -> subprocess.CompletedProcess:
  """Runs the command in a process of its own, which adopts orphans, on a program with this text."""
  (folder / "program.py").write_text(textwrap.dedent(source))
  command = [
      sys.executable, "-m", "tensorflow.staging", "compare", "--rounds=2", "--warm_up=5", "--steps=30", *options,
      "program.py", "{folder}"]
  return subprocess.run(
      command, cwd=folder, env=os.environ | environment, capture_output=True, text=True,
      timeout=test_util.PROGRAM_SECONDS, check=False)


@pytest.mark.alone
def test_a_program_that_waits_gains(tmp_path):
  done = _compare(tmp_path, _MONITORED)
  assert done.returncode == 0, done
  assert done.stderr.startswith("The program runs 4 times. In each, ")
  lines = done.stdout.splitlines()
  assert [line.split(":")[0] for line in lines[:4]] == [
      "round 1 of 2", "round 2 of 2", "without SmartStage", "with SmartStage"]
  assert re.fullmatch(r"    Stage 'prefetch' made its records ahead; steps waited for them .*%.*\.", lines[4])
  ratio = float(lines[5].split(" times as fast with SmartStage, over the rounds (")[0])
  assert 1.2 < ratio < 3
  # What the program has written is gone.
  assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py"]


@pytest.mark.alone
def test_a_fit_that_waits_gains(tmp_path):
  done = _compare(tmp_path, _FITS, TF_API_VERSION="2")
  assert done.returncode == 0, done
  lines = done.stdout.splitlines()
  assert lines[4].startswith("    Stage 'train' made its records ahead; "), done.stdout
  assert 1.2 < float(lines[5].split(" times as fast with SmartStage, over the rounds (")[0]) < 3


@pytest.mark.parametrize("source,expected", [
    # It fails in one of the two.
    (_TRAINS + """
with tf.Session() as sess:
  if sess._config.graph_options.optimizer_options.do_smart_stage:
    raise ValueError("no stages here")
  sess.run(tf.global_variables_initializer())
  while True:
    sess.run(train_op)
""", r"With SmartStage: the program failed with the exit status 1\. Its last lines:\n(.*\n)*    ValueError: no stages"),
    # It takes no step with a record.
    ("import tensorflow as tf\nwith tf.Session() as sess: sess.run(tf.constant(1))",
     r"Without SmartStage: no step of the program took a record from an iterator\."),
    # It takes too few.
    (_TRAINS + """
with tf.train.MonitoredTrainingSession() as sess:
  for _ in range(7):
    sess.run(train_op)
""", r"Without SmartStage: the program took only 7 steps\. Let it take more, or lower --warm_up \(now 5\)\."),
])
def test_what_is_no_comparison(tmp_path, source, expected):
  done = _compare(tmp_path, source)
  assert re.match(expected, done.stdout), done
  assert done.returncode == 1


@pytest.mark.parametrize("source,expected", [
    ("print(1)",
     "Without SmartStage: the program opened no session and called no fit, so it took no step that can be "),
    ("import time\ntime.sleep(1000)", "Without SmartStage: the program did not take its steps within 3 s. Raise "),
])
def test_a_program_without_tensorflow(tmp_path, source, expected):
  done = _compare(tmp_path, source, "--timeout=3")
  assert done.stdout.startswith(expected), done
  assert done.returncode == 1


@pytest.mark.alone
def test_a_program_that_ends_before_its_last_step(tmp_path):
  done = _compare(tmp_path, _TRAINS + """
with tf.train.MonitoredTrainingSession() as sess:
  for _ in range(60):
    sess.run(train_op)
time.sleep(1)  # Is no part of a step.
""", "--steps=1000", "--seconds=100")
  assert done.returncode == 0, done
  assert "Stage 'prefetch' made its records ahead; " in done.stdout
  assert 1.2 < float(re.search(r"(\S+) times as fast", done.stdout)[1]) < 3


def test_a_program_without_a_stage(tmp_path):
  done = _compare(tmp_path, """
      import tensorflow as tf
      number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(10**6)).get_next()
      with tf.Session() as sess:
        while True:
          sess.run(number)
      """)
  assert done.stdout.startswith("No stage ran: SmartStage has found nothing to run ahead of a step,"), done
  assert done.returncode == 1


@pytest.mark.parametrize("option", ["--rounds=1", "--rounds=two", "--steps=0", "--seconds=-1", "--timeout=inf"])
def test_wrong_options(option, capsys):
  with pytest.raises(SystemExit):
    main.main(["compare", option, "program.py"])
  assert "must be" in capsys.readouterr().err


def test_a_program_that_does_not_exist(capsys):
  assert main.main(["compare", "is_not_there.py"]) == 2
  assert "'is_not_there.py' is no file" in capsys.readouterr().err


def test_the_modes():
  assert {mode: setting.value for mode, setting in compare_command._MODES.items()} == {"without": "off", "with": "1"}
