# SPDX-License-Identifier: Apache-2.0
"""A parameter server and two workers train a model, each as a process with the model's command line."""

import re

import pytest
import tensorflow as tf

from modelzoo.base import loopback

_SECONDS = 250


def test_a_parameter_server_and_two_workers_train(folders, tmp_path):
  arguments = [
      f"--data={folders['taobao', 'csv']}", "--steps=60", "--batch_size=32", "--staging=smart", "--buckets=100",
      "--category_buckets=100", "--hidden=16,8", f"--checkpoint={tmp_path}"]
  chief, other = loopback.train("dssm", arguments, seconds=_SECONDS)
  steps = [int(re.search(r"DSSM: (\d+) steps", output)[1]) for output in (chief, other)]
  # Each worker ends when the global step, which both advance, has reached 60.
  assert 60 <= sum(steps) <= 62
  assert tf.train.load_variable(str(tmp_path), "global_step") >= 60
  assert re.search(r"DSSM: held-out loss [\d.]+, AUC [\d.]+ of 4000 rows", chief)
  assert "held-out" not in other


def test_an_unknown_model_is_refused():
  with pytest.raises(ValueError, match="name is 'dnn', but must be one of dlrm, "):
    loopback.train("dnn", [])
