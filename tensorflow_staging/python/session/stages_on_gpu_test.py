# SPDX-License-Identifier: Apache-2.0
"""In a session with a GPU, the hook names the option that keeps the stages of SmartStage on the CPU."""

import types

import pytest
import tensorflow as tf
from tensorflow.python.platform import tf_logging

from tensorflow_staging.python.session import stages_on_gpu
from tensorflow_staging.python.testing import test_util


def _config(**options):
  config = tf.ConfigProto()
  for name, value in {"do_smart_stage": True, **options}.items():
    setattr(config.graph_options.optimizer_options, name, value)
  return config


@pytest.fixture
def logged(monkeypatch):
  """What is logged with the level INFO, in a session that has a GPU."""
  lines = []
  monkeypatch.setattr(tf_logging, "info", lambda text, *args: lines.append(text % args))
  devices = [types.SimpleNamespace(device_type=kind) for kind in ("CPU", "GPU")]
  monkeypatch.setattr(tf.Session, "list_devices", lambda self: devices)
  return lines


def _train(config):
  length = tf.strings.length(tf.strings.as_string(test_util.dataset_record(3)))
  total = tf.assign_add(tf.get_variable("total", initializer=0), length)
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(2):
      with tf.make_prefetch_hook().running(sess):
        sess.run(total)


def test_the_hook_says_it_once(logged):
  _train(_config())
  assert logged.count(stages_on_gpu.NOTE) == 1


def test_with_the_option_there_is_nothing_to_say(logged):
  _train(_config(stage_subgraph_on_cpu=True))
  assert stages_on_gpu.NOTE not in logged


def test_without_a_gpu_there_is_nothing_to_say(logged, monkeypatch):
  monkeypatch.setattr(tf.Session, "list_devices", lambda self: [types.SimpleNamespace(device_type="CPU")])
  _train(_config())
  assert stages_on_gpu.NOTE not in logged


def test_a_stage_on_a_stream_of_its_own_is_meant_for_the_gpu():
  config = _config()
  config.graph_options.optimizer_options.smart_stage_options.stage_subgraph_stream_id = 1
  assert not stages_on_gpu.note(types.SimpleNamespace(sess_str=None), config, has_stages=True)
