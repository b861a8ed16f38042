# SPDX-License-Identifier: Apache-2.0
"""Both API roots are complete: TensorFlow 1's by default, and TensorFlow 2's on request."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util

# Yields the full name of every public symbol of a package and its subpackages. Skips `contrib`, which only says where
# its contents went.
_SYMBOLS = """
import types
import tensorflow as tf

def symbols(package, prefix=""):
  for name in sorted(dir(package)):
    if name.startswith("_") or name == "contrib":
      continue
    yield prefix + name
    value = getattr(package, name)
    is_api = isinstance(value, types.ModuleType) and value.__name__.startswith("tensorflow.")
    if is_api and not value.__name__.startswith("tensorflow.python") and name != "compat":
      yield from symbols(value, prefix + name + ".")
"""

# TensorFlow 2's own root removes this symbol, because it has nothing left to enable.
_NOT_IN_ROOT = {"1": [], "2": ["enable_v2_behavior"]}


@pytest.mark.parametrize("version", ["1", "2"])
def test_the_root_has_every_symbol_of_its_api(run_forked, tmp_path, version):
  program = _SYMBOLS + f"print(*sorted(set(symbols(tf.compat.v{version})) - set(symbols(tf))))"
  output = run_forked(program, tmp_path, api_version=version)
  assert output.split() == _NOT_IN_ROOT[version]


def test_both_compat_packages_are_the_same_under_both_roots(run_forked, tmp_path):
  program = _SYMBOLS + "print(*symbols(tf.compat.v1, 'v1.'), *symbols(tf.compat.v2, 'v2.'))"
  first, second = (run_forked(program, tmp_path, api_version=version).split() for version in "12")
  assert first == second
  assert {"v1.nn.relu", "v1.train.mark_target_node", "v2.function", "v2.data.Dataset"} <= set(first)


def test_the_first_version_is_the_default(tmp_path):
  output = test_util.run_program(
      """
      import os
      del os.environ["TF_API_VERSION"]
      import tensorflow as tf
      print(tf.executing_eagerly(), tf.Session.__name__, tf.placeholder(tf.float32).shape)
      """, tmp_path)
  assert output == "False Session <unknown>\n"


@pytest.mark.parametrize(
    "name", [
        "Session", "placeholder", "get_variable", "layers.dense", "keras.Model", "estimator.Estimator",
        "train.MonitoredTrainingSession", "losses.sigmoid_cross_entropy", "summary.FileWriter", "data.Iterator",
        "feature_column.input_layer", "compat.v1.Session", "compat.v2.function", "ConfigProto"
    ])
def test_names_that_scripts_of_the_first_version_use(name):
  value = tf
  for step in name.split("."):
    value = getattr(value, step)
  assert value is not None


def test_the_second_version_is_eager_and_stages_in_a_graph(run_forked, tmp_path):
  output = run_forked(
      """
      import tensorflow as tf

      assert tf.executing_eagerly() and not hasattr(tf, "Session")
      print(tf.function(lambda x: x + 1)(tf.constant(1)).numpy())
      with tf.Graph().as_default():
        dataset = tf.compat.v1.data.make_one_shot_iterator(tf.compat.v1.data.Dataset.range(3))
        fed = tf.compat.v1.placeholder(tf.int64, [])
        record = tf.staged({"x": dataset.get_next(), "y": fed}, feed_dict={fed: tf.constant(7, tf.int64)})
        with tf.compat.v1.Session() as sess, tf.make_prefetch_hook().running(sess):
          print(sess.run(record), sess.run(record["x"]))
      """, tmp_path, api_version="2")
  assert output == "2\n{'x': 0, 'y': 7} 1\n"


def test_other_versions_are_refused(tmp_path):
  test_util.run_program(
      """
      import os
      os.environ["TF_API_VERSION"] = "3"
      try:
        import tensorflow
      except ImportError as error:
        assert '"3"' in str(error), error
      else:
        raise AssertionError("imported")
      """, tmp_path)


@pytest.mark.parametrize("version", ["1", "2"])
def test_tensorboard_imports_and_reads_a_summary(run_forked, tmp_path, version):
  output = run_forked(
      """
      import tensorflow as tf
      from tensorboard.backend.event_processing import event_accumulator
      from tensorboard.plugins.scalar import summary

      v1 = tf.compat.v1
      with tf.Graph().as_default(), v1.Session() as sess:
        merged = v1.summary.scalar("loss", tf.constant(0.5))
        with v1.summary.FileWriter("logs", sess.graph) as writer:
          writer.add_summary(sess.run(merged), 3)
      events = event_accumulator.EventAccumulator("logs").Reload()
      print([(event.step, event.value) for event in events.Scalars("loss")])
      """, tmp_path, api_version=version)
  assert output == "[(3, 0.5)]\n"
