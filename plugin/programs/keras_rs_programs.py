# SPDX-License-Identifier: Apache-2.0
"""KerasRS: a ranking model of many embeddings, and a retrieval model with negatives of the batch."""

import keras
import keras_rs
import numpy as np
import tensorflow as tf
from comparison import main
from comparison import program
from comparison import result

_RANDOM = np.random.RandomState(0)
_USERS = [f"u{i}" for i in range(20)]
_MOVIES = [f"m{i}" for i in range(30)]
_ROWS = {
    "user": _RANDOM.choice(_USERS, 200), "movie": _RANDOM.choice(_MOVIES, 200),
    "price": _RANDOM.rand(200, 2).astype("float32")}
_LISTS = _RANDOM.choice(_MOVIES, [200, 5])
_RANKS = _RANDOM.randint(0, 3, [200, 5]).astype("float32")
_RATINGS = _RANDOM.randint(1, 6, [200, 1]).astype("float32")


def _data():
  return tf.data.Dataset.from_tensor_slices((_ROWS, _RATINGS)).shuffle(100, seed=4).batch(16)


def _ids():
  user, movie = keras.Input((), dtype="string", name="user"), keras.Input((), dtype="string", name="movie")
  ids = [keras.layers.StringLookup(vocabulary=_USERS)(user), keras.layers.Hashing(40)(movie)]
  return [user, movie], ids


@program(staged="LookupTableFindV2")
def ranking_with_crosses(callbacks):
  inputs, (user, movie) = _ids()
  price = keras.Input((2,), name="price")
  parts = [keras.layers.Embedding(21, 8)(user), keras.layers.Embedding(40, 8)(movie), keras.layers.Dense(8)(price)]
  dot = keras_rs.layers.DotInteraction()(parts)
  all_parts = keras.layers.Concatenate()([dot, *parts])
  crossed = keras_rs.layers.FeatureCross(projection_dim=4)(all_parts)
  model = keras.Model([*inputs, price], keras.layers.Dense(1)(crossed))
  model.compile("adagrad", "mse", metrics=["root_mean_squared_error"])
  history = model.fit(_data(), validation_data=_data().take(4), epochs=3, verbose=0, callbacks=callbacks)
  return result(model, history)


class Retrieval(keras.Model):
  """The two towers of KerasRS's tutorial, with a `train_step` of its own."""

  def __init__(self):
    super().__init__()
    self.users = keras.Sequential([keras.layers.StringLookup(vocabulary=_USERS), keras.layers.Embedding(21, 8)])
    self.lookup = keras.layers.StringLookup(vocabulary=_MOVIES)
    self.movies = keras.layers.Embedding(31, 8)
    self.corrects = keras_rs.layers.SamplingProbabilityCorrection()
    self.hard = keras_rs.layers.HardNegativeMining(6)
    self.accidental = keras_rs.layers.RemoveAccidentalHits()
    self.retrieval = keras_rs.layers.BruteForceRetrieval(k=5, return_scores=False)
    self.loss_fn = keras.losses.CategoricalCrossentropy(from_logits=True)

  def call(self, rows, training=False):
    users = self.users(rows["user"])
    result = {"user": users}
    if not training:
      self.retrieval.update_candidates(self.movies.embeddings)
      result["predictions"] = self.retrieval(users)
    return result

  def compute_loss(self, x, y, y_pred, sample_weight, training=True):
    ids = self.lookup(x["movie"])
    movies = self.movies(ids)
    logits = keras.ops.matmul(y_pred["user"], keras.ops.transpose(movies))
    labels = keras.ops.eye(keras.ops.shape(logits)[0])
    logits = self.corrects(logits, keras.ops.full_like(logits[0], 1 / 30))
    logits = self.accidental(logits, labels, ids)
    logits, labels = self.hard(logits, labels)
    return self.loss_fn(labels, logits)


@program(staged="LookupTableFindV2")
def retrieval(callbacks):
  model = Retrieval()
  model.compile("adam")
  data = _data().map(lambda rows, _: rows)
  history = model.fit(data, validation_data=data.take(3), epochs=3, verbose=0, callbacks=callbacks)
  return result(model, history)


@program(staged="LookupTableFindV2")
def distributed_embedding(callbacks):
  table = lambda name, size: keras_rs.layers.TableConfig(name, size, 8, combiner="mean", placement="default_device")
  tables = {"user": table("users", 21), "movie": table("movies", 40)}
  features = {
      name: keras_rs.layers.FeatureConfig(name, tables[name], (16, 1), (16, 8)) for name in ("user", "movie")}
  inputs = [keras.Input((1,), 16, dtype="string", name=name) for name in ("user", "movie")]
  ids = {"user": keras.layers.StringLookup(vocabulary=_USERS)(inputs[0]), "movie": keras.layers.Hashing(40)(inputs[1])}
  embedded = keras_rs.layers.DistributedEmbedding(features)(ids)
  model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Concatenate()(list(embedded.values()))))
  model.compile("adagrad", "mse")
  rows = {name: _ROWS[name][:192, None] for name in ("user", "movie")}
  data = tf.data.Dataset.from_tensor_slices((rows, _RATINGS[:192])).batch(16, drop_remainder=True)
  return result(model, model.fit(data, epochs=3, verbose=0, callbacks=callbacks))


@program(staged="hashing_1/hash")
def list_wise_ranking(callbacks):
  movies = keras.Input((5,), dtype="string")
  embedded = keras_rs.layers.EmbedReduce(40, 8, combiner="sqrtn")(
      keras.ops.expand_dims(keras.layers.Hashing(40)(movies), -1))
  model = keras.Model(movies, keras.ops.squeeze(keras.layers.Dense(1)(embedded), -1))
  model.compile("adam", keras_rs.losses.PairwiseLogisticLoss(), metrics=[keras_rs.metrics.NDCG(k=3)])
  data = tf.data.Dataset.from_tensor_slices((_LISTS, _RANKS)).batch(16)
  history = model.fit(data, epochs=3, verbose=0, callbacks=callbacks, validation_data=data)
  return result(model, history)


main("keras-rs")
