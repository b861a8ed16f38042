# SPDX-License-Identifier: Apache-2.0
"""The official wheel runs graphs without stages, SavedModels and frozen graphs of programs that have stages."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import official_wheel
from tensorflow_staging.python.testing import test_util

# Runs each graph of the folder as its .json file says, and prints the results. An error is a result, too.
_PROGRAM = """
import json, pathlib
import numpy as np

def step(sess, fetches, feeds):
  try:
    return [np.asarray(value).tolist() for value in sess.run(fetches, feeds)]
  except tf.errors.OpError as error:
    return [type(error).__name__, error.message]

def run(case):
  with tf.Graph().as_default(), tf.compat.v1.Session() as sess:
    if case["saved_model"]:
      tf.compat.v1.saved_model.loader.load(sess, ["serve"], case["path"])
    else:
      graph_def = tf.compat.v1.GraphDef.FromString(pathlib.Path(case["path"]).read_bytes())
      tf.import_graph_def(graph_def, name="")
    for name in case["initializers"]:
      sess.run(name)
    return [step(sess, *one) for one in case["steps"]]

print(json.dumps({case["name"]: run(case) for case in json.loads(pathlib.Path("cases.json").read_text())},
                 default=bytes.decode))
"""


def _numbers(count=8):
  return test_util.dataset_record(count)


class _Cases:
  """Collects graphs for the official wheel."""

  def __init__(self, folder):
    self._folder = folder
    self._cases = []

  def add_graph(self, name, graph_def, steps, initializers=()):
    path = self._folder / f"{name}.pb"
    path.write_bytes(graph_def.SerializeToString())
    self._add(name, path, steps, initializers, saved_model=False)

  def add_saved_model(self, name, path, steps):
    self._add(name, path, steps, (), saved_model=True)

  def _add(self, name, path, steps, initializers, saved_model):
    self._cases.append({
        "name": name,
        "path": str(path),
        "steps": steps,
        "initializers": list(initializers),
        "saved_model": saved_model
    })

  def run(self):
    (self._folder / "cases.json").write_text(json.dumps(self._cases))
    return json.loads(official_wheel.run_program(_PROGRAM, self._folder))


def _training_graph():
  """Adds a model that learns from a stage; returns the staged features, the prediction and the training op."""
  words = tf.data.Dataset.range(100).map(lambda i: tf.strings.as_string([i, i + 1]))
  word = tf.staged(tf.data.make_one_shot_iterator(words).get_next(), capacity=2, name="input")
  rows = tf.get_variable("rows", [20, 2], initializer=tf.random_uniform_initializer(seed=1))
  out = tf.reduce_sum(tf.nn.embedding_lookup(rows, tf.strings.to_hash_bucket_fast(word, 20)), 1, name="out")
  return word, out, tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(out))


def _add_trained_models(cases, folder):
  """Adds a SavedModel and two frozen graphs of a model that has been trained, and returns what it predicts."""
  with tf.Graph().as_default() as graph:
    word, out, train = _training_graph()
    with tf.Session() as sess:
      sess.run(tf.global_variables_initializer())
      with tf.make_prefetch_hook().running(sess):
        for _ in range(5):
          sess.run(train)
        tf.saved_model.simple_save(sess, str(folder / "model"), {"x": word}, {"out": out})
        frozen = tf.graph_util.convert_variables_to_constants(sess, sess.graph_def, ["out"])
        cut = tf.staging.unstaged(graph, ["out"])
        explicit = tf.graph_util.convert_variables_to_constants(sess, cut, ["out"])
        wanted = sess.run(out, {word: ["3", "9"]}), sess.run(word).tolist()
  steps = [[["out:0"], {"input/TensorBufferTake:0": ["3", "9"]}], [["input/TensorBufferTake:0", "out:0"], {}]]
  cases.add_saved_model("saved model", folder / "model", steps)
  cases.add_graph("frozen", frozen, steps)
  cases.add_graph("cut and frozen", explicit, steps)
  return wanted


def _add_training_graph(cases):
  with tf.Graph().as_default() as graph:
    _training_graph()
    init = tf.global_variables_initializer().name
    cases.add_graph("training", tf.staging.unstaged(graph), [[["out:0", "GradientDescent"], {}]] * 3, [init])


def _add_chain(cases):
  with tf.Graph().as_default() as graph:
    first = tf.staged({"a": _numbers(), "b": [_numbers() * 10, None]}, name="first")
    second = tf.staged((first["a"] + 1, first["b"]), name="second")
    tf.add_n([second[0], second[1][0]], name="sum")
    cases.add_graph("chain", tf.staging.unstaged(graph, ["sum"]), [[["sum:0"], {}]] * 3)


def _add_feeds(cases):
  with tf.Graph().as_default() as graph:
    offset = tf.placeholder(tf.int64, [], name="offset")
    number = _numbers() + offset
    taken = tf.staged(number, feed_dict={offset: tf.constant(100, tf.int64)})
    tf.stack([taken, offset, offset * 2], name="all")
    # The graph itself, its definition with collections, and what a program reads of that.
    cases.add_graph("feeds", tf.staging.unstaged(graph, ["all"]), [[["all:0"], {"offset:0": k}] for k in (1, 2)])
    exported = tf.staging.unstaged(tf.train.export_meta_graph()).graph_def
    cases.add_graph("exported feeds", exported, [[["all:0"], {"offset:0": k}] for k in (1, 2)])


def _add_loop(cases):
  """Adds a loop of version 1 that the stage and the step run with different feeds."""
  with tf.Graph().as_default() as graph:
    limit = tf.placeholder(tf.int64, [], name="limit")
    doubled = tf.while_loop(lambda i: i < limit, lambda i: 2 * i, [_numbers() + 1], name="double")
    taken = tf.staged(doubled, feed_dict={limit: tf.constant(100, tf.int64)})
    tf.stack([taken, limit], name="both")
    tf.identity(doubled, name="beside")
    cases.add_graph("loop", tf.staging.unstaged(graph, ["both", "beside"]), [[["both:0", "beside:0"], {"limit:0": 4}]])


def _add_function(cases):
  with tf.Graph().as_default() as graph:

    @tf.function
    def square(x):
      return tf.cond(x > 0, lambda: x * x, lambda: tf.constant(-1, tf.int64))

    sparse = tf.sparse.from_dense(tf.stack([_numbers(), 7]))
    value, sparse = tf.staged((square(_numbers()), sparse))
    tf.add(square(value + 2), tf.sparse.reduce_sum(sparse), name="sum")
    cases.add_graph("function", tf.staging.unstaged(graph, ["sum"]), [[["sum:0"], {}]] * 2)


def _add_joins(cases):
  with tf.Graph().as_default() as graph:
    tf.identity(tf.prefetch_join([_numbers()]), name="one")
    pair = tf.prefetch_join([{"x": _numbers()}, {"x": _numbers() + 10}], name="pair")
    tf.multiply(pair["x"], 2, name="two")
    graph_def = tf.staging.unstaged(graph)
  cases.add_graph("join", graph_def, [[["one:0"], {}], [["two:0"], {"pair/TensorBufferTake:0": 21}], [["two:0"], {}]])


@pytest.fixture(scope="module")
def official(tmp_path_factory):
  """What the official wheel has computed, by the name of the graph, and what is expected of the trained models."""
  folder = tmp_path_factory.mktemp("official")
  cases = _Cases(folder)
  trained = _add_trained_models(cases, folder)
  for add in (_add_training_graph, _add_chain, _add_feeds, _add_loop, _add_function, _add_joins):
    add(cases)
  return cases.run(), trained


@pytest.mark.parametrize("name", ["saved model", "frozen", "cut and frozen"])
def test_a_model_of_a_training_graph_predicts(official, name):
  results, (prediction, _) = official
  fed, own = results[name]
  np.testing.assert_allclose(fed[0], prediction, rtol=1e-6)
  # Without a feed, it reads the data from the beginning.
  assert own[0] == ["0", "1"]
  assert np.shape(own[1]) == (2,)


def test_a_model_goes_on_training_after_the_export(official):
  _, (_, next_record) = official
  assert next_record == [b"5", b"6"]


def test_a_training_graph_trains(official):
  # The same rows are drawn from the same seed, and the gradient is 1 for each row that is used.
  losses = [step[0] for step in official[0]["training"]]
  assert len({tuple(loss) for loss in losses}) == 3
  assert all(np.shape(loss) == (2,) for loss in losses)


@pytest.mark.parametrize(
    "name, wanted", [
        ("chain", [[1], [12], [23]]),
        ("feeds", [[[100, 1, 2]], [[101, 2, 4]]]),
        ("exported feeds", [[[100, 1, 2]], [[101, 2, 4]]]),
        ("loop", [[[128, 4], 4]]),
        ("function", [[-1 + 2 + 7], [9 + 8]]),
    ])
def test_a_graph_computes_the_same(official, name, wanted):
  assert official[0][name] == wanted


def test_a_join_of_one_source_is_connected_and_one_of_several_has_to_be_fed(official):
  one, fed, unfed = official[0]["join"]
  assert one == [0] and fed == [42]
  assert unfed[0] == "InvalidArgumentError" and "pair/TensorBufferTake/feed_0" in unfed[1]
