# SPDX-License-Identifier: Apache-2.0
"""`python -m tensorflow.staging run` runs a program as Python does, with SmartStage in its sessions."""

import os
import subprocess
import sys

import pytest

from tensorflow_staging.python.command_line import main
from tensorflow_staging.python.testing import test_util

_TRAINS = """
import os, subprocess, sys
import tensorflow as tf

number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1000)).get_next()
total = tf.get_variable("total", initializer=tf.constant(0, tf.int64), use_resource=True)
train_op = total.assign_add(2 * number)
with tf.train.MonitoredTrainingSession() as sess:
  print([int(sess.run(train_op)) for _ in range(20)][-1], [stage.name for stage in tf.staging.stats(sess)])
"""
_ON = "tensorflow.staging: SmartStage is on in all sessions of this program, by TF_STAGING_SMART_STAGE=1."


def _run(folder, source, *arguments, **environment):
  (folder / "program.py").write_text(source)
  return subprocess.run(
      [sys.executable, "-m", "tensorflow.staging", "run", *arguments], cwd=folder, env=os.environ | environment,
      capture_output=True, text=True, timeout=test_util.PROGRAM_SECONDS, check=False)


def test_a_program_that_knows_nothing_of_stages(tmp_path):
  done = _run(tmp_path, _TRAINS, "program.py")
  assert done.returncode == 0, done
  assert done.stdout == "380 ['prefetch']\n"
  said = [line for line in done.stderr.splitlines() if line.startswith("tensorflow.staging: ")]
  assert said[0].startswith(_ON)
  assert said[1].startswith("tensorflow.staging: Stage 'prefetch' has ended after 20 records: it h")
  assert len(said) == 2


def test_a_child_process_inherits_it(tmp_path):
  (tmp_path / "child.py").write_text(_TRAINS)
  parent = "import subprocess, sys\nsubprocess.run([sys.executable, 'child.py'], check=True)"
  done = _run(tmp_path, parent, "program.py")
  assert done.stdout == "380 ['prefetch']\n"
  # The parent opens no session, and says nothing.
  assert done.stderr.count("tensorflow.staging: ") == 2


def test_a_program_of_tensorflow_2_is_told_what_to_use(tmp_path):
  done = _run(tmp_path, "import tensorflow as tf\nprint(int(tf.constant(1) + 1))", "program.py", TF_API_VERSION="2")
  assert done.stdout == "2\n"
  said, = [line for line in done.stderr.splitlines() if line.startswith("tensorflow.staging: ")]
  assert "has changed nothing: this program opened no session and called no fit. " in said


def test_a_program_that_runs_nothing_says_nothing(tmp_path):
  assert "tensorflow.staging: " not in _run(tmp_path, "import tensorflow", "program.py", TF_API_VERSION="2").stderr


def test_it_is_run_as_by_python(tmp_path):
  source = """
import os, sys
print(sys.argv, __name__, sys.path[0] == os.getcwd(), os.environ.get("TF_CPP_MIN_LOG_LEVEL"))
sys.exit(7)
"""
  done = _run(tmp_path, source, "program.py", "-x", "--html=1", "--", "2")
  assert done.stdout == "['program.py', '-x', '--html=1', '--', '2'] __main__ True None\n"
  assert done.returncode == 7
  done = _run(tmp_path, source, "-m", "program", TF_CPP_MIN_LOG_LEVEL="2")
  assert done.stdout.endswith(" __main__ True 2\n")


def test_a_program_that_does_not_exist(capsys):
  assert main.main(["run", "is_not_there.py"]) == 2
  assert "'is_not_there.py' is no file; allowed is a Python script, or -m with a module." in capsys.readouterr().err


@pytest.mark.parametrize("value,stages", [("off", []), ("1", ["own"])])
def test_a_program_that_turns_it_on(tmp_path, value, stages):
  source = """
import tensorflow as tf

number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1000)).get_next()
total = tf.get_variable("total", initializer=tf.constant(0, tf.int64), use_resource=True)
train_op = total.assign_add(2 * number)
config = tf.ConfigProto()
config.graph_options.optimizer_options.do_smart_stage = True
config.graph_options.optimizer_options.smart_stage_options.CopyFrom(tf.SmartStageOptions(name="own"))
with tf.train.MonitoredTrainingSession(config=config, hooks=[tf.make_prefetch_hook()]) as sess:
  print([int(sess.run(train_op)) for _ in range(20)][-1], [stage.name for stage in tf.staging.stats(sess)])
"""
  assert test_util.run_program(source, tmp_path, TF_STAGING_SMART_STAGE=value) == f"380 {stages}\n"
