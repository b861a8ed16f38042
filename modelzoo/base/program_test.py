# SPDX-License-Identifier: Apache-2.0
"""The command line names a wrong value and what is allowed."""

import pytest

from modelzoo.base import program
from modelzoo.base.model import load


def _error(capsys, *words):
  with pytest.raises(SystemExit):
    program.parse(load("dlrm"), words)
  return capsys.readouterr().err


def test_the_flags_reach_their_settings(folders):
  run = program.parse(
      load("dlrm"), [
          f"--data={folders['criteo', 'csv']}", "--steps=7", "--batch_size=8", "--staging=smart", "--capacity=3",
          "--threads=2", "--pool=2", "--stage_on_cpu", "--bottom=32,16", "--learning_rate=0.5", "--no-evaluate"])
  assert (run.training.steps, run.input.batch_size, run.training.evaluate) == (7, 8, False)
  assert (run.staging.staging, run.staging.capacity, run.staging.threads, run.staging.pool) == ("smart", 3, 2, 2)
  assert run.staging.stage_on_cpu
  assert (run.hyperparameters.bottom, run.hyperparameters.learning_rate) == ((32, 16), 0.5)
  config = run.config()
  assert config.graph_options.optimizer_options.smart_stage_options.capacity == 3
  assert config.session_stage_subgraph_thread_pool[0].inter_op_threads_num == 2
  assert config.device_count["GPU"] == 0


def test_streams_are_those_of_the_session(folders):
  words = [f"--data={folders['criteo', 'csv']}", "--gpu", "--streams=2", "--staging=smart"]
  options = program.parse(load("dlrm"), words).config().graph_options
  assert options.rewrite_options.multi_stream_opts.multi_stream_num == 2
  assert options.optimizer_options.stage_multi_stream
  assert options.optimizer_options.smart_stage_options.stage_subgraph_stream_id == 1


@pytest.mark.parametrize(("word", "message"), [
    ("--steps=0", "argument --steps: '0' is not a whole number of at least 1"),
    ("--steps=many", "argument --steps: 'many' is not a whole number of at least 1"),
    ("--threads=5000", "argument --threads: '5000' is not a whole number from 0 to 4096"),
    ("--learning_rate=-1", "argument --learning_rate: '-1' is not a number of at least 0"),
    ("--bottom=8,x", "argument --bottom: '8,x' is not a list such as 512,256 of at least 1"),
    ("--staging=always", "argument --staging: invalid choice: 'always' (choose from"),
    ("--optimizer=lion", "argument --optimizer: invalid choice: 'lion' (choose from"),
    ("--pool=2", "pool is 2, but staging is none; it must be staged or smart"),
    ("--streams=2", "streams is 2, but must be 1 without gpu"),
    ("--job=worker", "ps is empty, but job is worker; it must list addresses"),
    ("--ps=localhost:1", "ps or workers is given, but job is local; it must be ps or worker"),
    ("--data=", "data is empty, but must name a folder of files"),
    ("--data=/nowhere", "data is '/nowhere', but must be a folder with files train*.csv or train*.tfrecord; it has"),
])
def test_a_wrong_word_is_named(capsys, folders, word, message):
  error = _error(capsys, f"--data={folders['criteo', 'csv']}", word)
  assert message in error


@pytest.mark.parametrize(("words", "message"), [
    (["--task=2"], "task is 2, but must be less than 2, the number of addresses of worker"),
    (["--staging=smart", "--gpu", "--streams=2"], "streams is 2, but must be 1 for job worker"),
])
def test_a_wrong_word_of_a_worker_is_named(capsys, folders, words, message):
  cluster = ["--job=worker", "--ps=localhost:1", "--workers=localhost:2,localhost:3"]
  assert message in _error(capsys, f"--data={folders['criteo', 'csv']}", *cluster, *words)


def test_a_value_of_a_wrong_type_is_refused():
  with pytest.raises(TypeError, match="buckets is 1.5, but must be of type int"):
    load("dlrm").hyperparameters(buckets=1.5)
  with pytest.raises(ValueError, match="optimizer is 'lion', but must be one of sgd, adagrad, adam"):
    load("dlrm").hyperparameters(optimizer="lion")
