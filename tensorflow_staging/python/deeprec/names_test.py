# SPDX-License-Identifier: Apache-2.0
"""Programs that are written for DeepRec find the names that they ask for, and no other program does.

Each test runs a process, because the names stay for as long as a process lives.
"""

import subprocess
import sys
import textwrap

import pytest

# As DeepRec's scripts for several tasks ask, before they use a stage.
_VERSION_CHECK = """
    import pkg_resources
    if "deeprec" not in pkg_resources.get_distribution("Tensorflow").version:
      raise SystemExit("no stages here")
    """

_PROGRAMS = {
    "without": """
        import sys
        import pkg_resources
        import tensorflow as tf
        print("tensorflow.contrib" in sys.modules, hasattr(tf, "EmbeddingVariableOption"))
        print("deeprec" in pkg_resources.get_distribution("Tensorflow").version)
        """,
    "version": """
        import importlib.metadata
        import pkg_resources
        import tensorflow as tf
        before = pkg_resources.get_distribution("tensorflow").version
        tf.staging.use_deeprec_names()
        tf.staging.use_deeprec_names()
        print(pkg_resources.get_distribution("Tensorflow").version == before + ".deeprec")
        print(importlib.metadata.version("tensorflow") == before)
        print("deeprec" in tf.__version__ + tf.staging.build_info().staging_version)
        """,
    "no_setuptools": """
        import sys
        import tensorflow as tf
        sys.modules["pkg_resources"] = None
        tf.staging.use_deeprec_names()
        print(tf.contrib.__name__)
        """,
    "embedding_variable_option": """
        import tensorflow as tf
        tf.staging.use_deeprec_names()
        tf.EmbeddingVariableOption(evict_option=None, filter_option=None)
        try:
          tf.EmbeddingVariableOption(None, filter_option="counter")
        except ValueError as error:
          print(error)
        """,
    "contrib": """
        import tensorflow as tf
        tf.staging.use_deeprec_names()
        try:
          tf.contrib.layers
        except AttributeError as error:
          print(error)
        """,
    "linear": """
        import tensorflow as tf
        tf.staging.use_deeprec_names()
        from tensorflow.contrib.rnn.python.ops.core_rnn_cell import _Linear
        inputs = [tf.ones([2, 3]), tf.ones([2, 4])]
        with tf.variable_scope("cell"):
          cell = _Linear(inputs, 5, True, kernel_initializer=tf.ones_initializer())
        with tf.variable_scope("other"):
          alone = _Linear(inputs[0], 1, False, kernel_initializer=tf.ones_initializer())
        print(sorted(variable.name for variable in tf.global_variables()))
        with tf.Session() as sess:
          sess.run(tf.global_variables_initializer())
          print(sess.run([cell(inputs)[0], alone(inputs[0])[0]]))
        try:
          _Linear(tf.ones([2]), 5, True)
        except ValueError as error:
          print("[batch, width]" in str(error))
        """,
    "sequence_input_layer": """
        import tensorflow as tf
        tf.staging.use_deeprec_names()
        features = {
            "tags": tf.strings.split(tf.constant(["a|b|c", "d"]), "|"),
            "brands": tf.strings.split(tf.constant(["x|y|z", "w"]), "|"),
        }
        hashed = tf.contrib.feature_column.sequence_categorical_column_with_hash_bucket
        tags = tf.feature_column.embedding_column(
            hashed("tags", 10), 2, initializer=tf.ones_initializer())
        brands = tf.feature_column.indicator_column(
            tf.feature_column.sequence_categorical_column_with_hash_bucket("brands", 4))
        rows, lengths = tf.contrib.feature_column.sequence_input_layer(features, [tags, brands])
        print(rows.shape, rows.dtype.name, lengths.dtype.name)
        print([variable.name for variable in tf.trainable_variables()])
        with tf.Session() as sess:
          sess.run(tf.global_variables_initializer())
          values, counts = sess.run([rows, lengths])
        print(values.shape, counts.tolist(), values[0, :, 4:].tolist(), values[1, :, 4:].tolist())
        print(values[:, :, :4].sum(axis=-1).tolist())
        short = {**features, "brands": tf.strings.split(tf.placeholder_with_default(["x|y", "w"], [None]), "|")}
        _, lengths = tf.contrib.feature_column.sequence_input_layer(short, [tags, brands])
        with tf.Session() as sess:
          try:
            sess.run(lengths)
          except tf.errors.InvalidArgumentError as error:
            print("disagree on the length" in str(error))
        for columns in ([], [tf.feature_column.numeric_column("age")]):
          try:
            tf.contrib.feature_column.sequence_input_layer(features, columns)
          except ValueError as error:
            print(str(error)[:40])
        """,
}


@pytest.fixture
def output_of(run_forked, tmp_path):
  return lambda name: run_forked(_PROGRAMS[name], tmp_path).splitlines()


def test_without_the_call_nothing_changes(output_of):
  assert output_of("without") == ["False False", "False"]


def test_the_version_contains_deeprec_for_who_asks_pkg_resources(output_of):
  assert output_of("version") == ["True", "True", "False"]


def test_setuptools_may_be_missing(output_of):
  assert output_of("no_setuptools") == ["tensorflow.contrib"]


def test_an_embedding_variable_option_holds_no_option(output_of):
  line, = output_of("embedding_variable_option")
  assert line.startswith("tf.EmbeddingVariableOption takes only None, got filter_option='counter'. This TensorFlow")


def test_contrib_says_what_there_is(output_of):
  line, = output_of("contrib")
  assert line.startswith("tensorflow.contrib.layers is not there.")
  assert "tensorflow.contrib.feature_column.sequence_input_layer" in line


def test_linear_multiplies_its_inputs(output_of):
  names, values, refused = output_of("linear")
  assert names == "['cell/bias:0', 'cell/kernel:0', 'other/kernel:0']"
  assert values == "[array([7., 7., 7., 7., 7.], dtype=float32), array([3.], dtype=float32)]"
  assert refused == "True"


def test_a_sequence_input_layer_gives_rows_and_lengths(output_of):
  shape, variables, values, indicated, disagree, none, no_sequence = output_of("sequence_input_layer")
  assert shape.endswith("float32 int64")
  assert variables == "['sequence_input_layer/tags_embedding/embedding_weights:0']"
  # The indicator's 4 values come first, because the columns are sorted by name.
  assert values == ("(2, 3, 6) [3, 1] [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]] [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]")
  assert indicated == "[[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]"
  assert disagree == "True"
  assert none == "feature_columns must have at least one c"
  assert no_sequence == "feature_columns must be columns of seque"


def _run(tmp_path, *arguments):
  return subprocess.run(
      [sys.executable, "-m", "tensorflow_staging.python.deeprec", *arguments],
      cwd=tmp_path, capture_output=True, text=True)


def test_a_script_runs_without_an_edit(tmp_path):
  (tmp_path / "neighbour.py").write_text("value = 5\n")
  script = tmp_path / "train.py"
  script.write_text(textwrap.dedent(_VERSION_CHECK) + textwrap.dedent("""
      import sys
      import tensorflow as tf
      import neighbour
      if __name__ == "__main__":
        print(sys.argv[1:], neighbour.value, tf.EmbeddingVariableOption().__class__.__name__)
      """))
  result = _run(tmp_path, str(script), "--smartstaged", "true")
  assert result.stdout == "['--smartstaged', 'true'] 5 EmbeddingVariableOption\n", result.stderr
  assert subprocess.run([sys.executable, script], capture_output=True, text=True).returncode == 1


@pytest.mark.parametrize("arguments, message", [
    ([], "usage: python -m tensorflow_staging.python.deeprec SCRIPT"),
    (["missing.py"], "error: there is no file 'missing.py'"),
])
def test_a_script_is_needed(tmp_path, arguments, message):
  result = _run(tmp_path, *arguments)
  assert result.returncode == 1 and message in result.stderr
