# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.explain` says on which GPU a session has what of a record; the GPUs are those of fake_gpus.py."""

import json
import pathlib

import pytest

from tensorflow_staging.python.testing import forks

# For each program, by name: the GPUs that its step uses, and the configuration of its session.
_PROGRAMS = {
    "first": ([0], {}),
    "second": ([1], {}),
    "both": ([0, 1], {}),
    "hidden": ([0], {"device_count": {"GPU": 0}, "allow_soft_placement": True}),
}

# Prints, for each program, what the report says of each device, and what the session has there. The step uses the words
# on the host and their rows on GPUs.
_MAIN = """
import json, sys
sys.path.append({testing!r})
import fake_gpus
fake_gpus.load(2)
import tensorflow as tf


def config_of(options):
  return tf.staging.smart_stage_config(tf.ConfigProto(**options))


def run(gpus, options):
  words = tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(["a", "b"]).repeat()).get_next()
  rows = tf.one_hot(tf.strings.to_hash_bucket_fast(words, 4), 4, name="rows")
  updates = [tf.strings.join([words, tf.as_string(tf.get_variable("step", [], use_resource=True))])]
  for gpu in gpus:
    with tf.device(f"/gpu:{{gpu}}"):
      total = tf.get_variable(f"total_{{gpu}}", initializer=tf.zeros([4]), use_resource=True)
      updates.append(total.assign_add(rows, read_value=False))
  config, metadata, ops = config_of(options), tf.RunMetadata(), {{}}
  report = tf.staging.explain(config=config)
  with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      sess.run(updates, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
  for graph in metadata.partition_graphs:
    for node in graph.node:
      ops.setdefault(node.device[-5:], []).append(node.op)
  config.graph_options.rewrite_options.use_multi_stream = 1
  config.graph_options.rewrite_options.multi_stream_opts.multi_stream_num = 2
  return {{
      "parts": {{part.device: [tensor.name for tensor in part.tensors] for part in report.stages[0].parts}}, "ops": ops,
      "text": str(report), "page": report.to_html(), "streams": str(tf.staging.explain(config=config))}}


results = {{}}
for name, (gpus, options) in {programs!r}.items():
  with tf.Graph().as_default():
    results[name] = run(gpus, options)
print(json.dumps(results))
"""

_GPU = "/job:localhost/replica:0/task:0/device:GPU:"


@pytest.fixture(scope="module")
def found(run_forked, tmp_path_factory):
  """What the programs have printed, by name."""
  testing = str(pathlib.Path(forks.__file__).parent)
  output = run_forked(_MAIN.format(testing=testing, programs=_PROGRAMS), tmp_path_factory.mktemp("programs"))
  return json.loads(output.splitlines()[-1])


@pytest.mark.parametrize("name, gpu", [("first", 0), ("second", 1)])
def test_what_one_gpu_gets(found, name, gpu):
  parts, ops = found[name]["parts"], found[name]["ops"]
  assert parts == {"host": ["IteratorGetNext:0"], f"{_GPU}{gpu}": ["rows:0"]}
  assert "TensorBufferTake" in ops[f"GPU:{gpu}"]
  for text in found[name]["text"], found[name]["page"]:
    assert "Where a record waits for the step" in text
    assert f"on /device:GPU:{gpu}: " in text


def test_what_each_of_two_gpus_gets(found):
  parts, ops = found["both"]["parts"], found["both"]["ops"]
  assert parts == {"host": ["IteratorGetNext:0"], f"{_GPU}0": ["rows:0"], f"{_GPU}1": ["rows:0"]}
  assert "TensorBufferTake" in ops["GPU:0"] and "RecordShare" in ops["GPU:1"]


def test_a_session_without_its_gpus_has_its_records_in_host_memory(found):
  assert list(found["hidden"]["parts"]) == ["host"]
  assert "A record waits for the step in host memory." in found["hidden"]["text"]
  assert "TensorBufferTake" in found["hidden"]["ops"]["CPU:0"]


def test_several_streams_are_left_to_the_session(found):
  assert "only the session decides" in found["first"]["streams"]


@pytest.mark.parametrize("device", ["/job:worker/task:1/device:CPU:0", "/gpu:0"])
def test_a_graph_that_names_devices_of_others_is_left_to_the_session(run_forked, device, tmp_path):
  text = run_forked(
      f"""
      import tensorflow as tf

      words = tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensor_slices(["a", "b"])).get_next()
      with tf.device({device!r}):
        tf.train.mark_target_node(tf.identity(tf.strings.length(words)))
      print(tf.staging.explain())
      """, tmp_path)
  assert "only the session decides" in text
