# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Recommenders on tf_keras: retrieval, ranking, and both at once, as in its tutorials."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

# pylint: disable=g-import-not-at-top,wrong-import-position
import numpy as np
import tensorflow as tf
import tensorflow_recommenders as tfrs
from comparison import main
from comparison import program
from comparison import result

_RANDOM = np.random.RandomState(0)
_USERS = [f"u{i}" for i in range(20)]
_TITLES = [f"the {kind} film {i}" for i in range(10) for kind in ("good", "bad")]
_ROWS = {
    "user": _RANDOM.choice(_USERS, 200), "title": _RANDOM.choice(_TITLES, 200),
    "time": _RANDOM.rand(200).astype("float32"), "rating": _RANDOM.randint(1, 6, 200).astype("float32")}
_layers = tf.keras.layers


def _data():
  return tf.data.Dataset.from_tensor_slices(_ROWS).shuffle(100, seed=4).batch(16)


class User(tf.keras.Model):
  """Looks users up, and sorts times into ranges."""

  def __init__(self):
    super().__init__()
    self.ids = tf.keras.Sequential([_layers.StringLookup(vocabulary=_USERS), _layers.Embedding(21, 8)])
    self.times = tf.keras.Sequential([_layers.Discretization([0.2, 0.4, 0.7]), _layers.Embedding(5, 4)])

  def call(self, rows):
    return tf.concat([self.ids(rows["user"]), self.times(rows["time"])], 1)


class Movie(tf.keras.Model):
  """Looks titles and their words up."""

  def __init__(self):
    super().__init__()
    words = _layers.TextVectorization(vocabulary=["the", "film", "good", "bad"])
    self.titles = tf.keras.Sequential([_layers.StringLookup(vocabulary=_TITLES), _layers.Embedding(21, 8)])
    self.words = tf.keras.Sequential([
        words, _layers.Embedding(8, 4, mask_zero=True), _layers.GlobalAveragePooling1D()])

  def call(self, titles):
    return tf.concat([self.titles(titles), self.words(titles)], 1)


class Both(tfrs.Model):
  """Retrieves movies and predicts their ratings."""

  def __init__(self, retrieval: float, ranking: float):
    super().__init__()
    self.users = tf.keras.Sequential([User(), _layers.Dense(8)])
    self.movies = tf.keras.Sequential([Movie(), _layers.Dense(8)])
    self.rating = tf.keras.Sequential([_layers.Dense(8, "relu", input_shape=(16,)), _layers.Dense(1)])
    candidates = tf.data.Dataset.from_tensor_slices(_TITLES).batch(8).map(self.movies)
    self.retrieval = tfrs.tasks.Retrieval(metrics=tfrs.metrics.FactorizedTopK(candidates=candidates, ks=(1, 5)))
    self.ranking = tfrs.tasks.Ranking(
        tf.keras.losses.MeanSquaredError(), metrics=[tf.keras.metrics.RootMeanSquaredError()])
    self.weights_of_tasks = retrieval, ranking

  def compute_loss(self, rows, training=False):
    users, movies = self.users({"user": rows["user"], "time": rows["time"]}), self.movies(rows["title"])
    loss, (retrieval, ranking) = 0.0, self.weights_of_tasks
    if retrieval:
      loss += retrieval * self.retrieval(users, movies, compute_metrics=not training)
    if ranking:
      loss += ranking * self.ranking(labels=rows["rating"], predictions=self.rating(tf.concat([users, movies], 1)))
    return loss


def _fit(callbacks, *weights, **options):
  model = Both(*weights)
  model.compile(tf.keras.optimizers.Adagrad(0.1), **options)
  history = model.fit(_data(), validation_data=_data().take(3), epochs=3, verbose=0, callbacks=callbacks)
  return result(model, history, model.evaluate(_data().take(4).cache(), verbose=0, callbacks=callbacks))


@program(staged="LookupTableFindV2")
def retrieval(callbacks):
  return _fit(callbacks, 1.0, 0.0)


@program(staged="LookupTableFindV2")
def ranking(callbacks):
  return _fit(callbacks, 0.0, 1.0)


@program(staged="LookupTableFindV2")
def both_tasks_several_steps(callbacks):
  return _fit(callbacks, 0.5, 1.0, steps_per_execution=4)


@program(staged="LookupTableFindV2")
def deep_and_cross(callbacks):
  inputs = {"user": tf.keras.Input((), dtype=tf.string), "time": tf.keras.Input(())}
  crossed = tfrs.layers.dcn.Cross(projection_dim=4)(User()(inputs))
  model = tf.keras.Model(inputs, _layers.Dense(1)(crossed))
  model.compile("adam", "mse", metrics=["mae"])
  data = _data().map(lambda rows: ({"user": rows["user"], "time": rows["time"]}, rows["rating"]))
  history = model.fit(data, epochs=3, verbose=0, callbacks=[
      tf.keras.callbacks.EarlyStopping("loss", patience=0, min_delta=1.0), *callbacks])
  return result(model, history)


main("tensorflow-recommenders", "tf-keras")
