# SPDX-License-Identifier: Apache-2.0
"""Keras 3 alone: its own preprocessing layers in the model, its ways to give data, and its callbacks."""

import pathlib
import tempfile

import keras
import numpy as np
import tensorflow as tf
from comparison import main
from comparison import program
from comparison import result

_RANDOM = np.random.RandomState(0)
_ROWS = 96
_IMAGES = (_RANDOM.rand(_ROWS, 12, 12, 3) * 255).astype("float32")
_CLASSES = _RANDOM.randint(0, 3, _ROWS)
_COLORS = _RANDOM.choice(["red", "green", "blue"], [_ROWS, 1])
_SIZES = _RANDOM.rand(_ROWS, 1).astype("float32")
_PRICES = (_SIZES * 3 + (_COLORS == "red")).astype("float32")
_TEXTS = np.array([" ".join(_RANDOM.choice(["good", "bad", "the", "film"], n % 6 + 1)) for n in range(_ROWS)])


def _image_model(*layers, **options):
  model = keras.Sequential([
      keras.Input((12, 12, 3)), *layers, keras.layers.Conv2D(4, 3, activation="relu"),
      keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(3)])
  model.compile(
      "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], **options)
  return model


def _images():
  return tf.data.Dataset.from_tensor_slices((_IMAGES, _CLASSES)).shuffle(50, seed=1).batch(8)


def _fit_images(callbacks, layers, **options):
  model = _image_model(*layers, **options)
  history = model.fit(_images(), validation_data=_images().take(3), epochs=3, verbose=0, callbacks=callbacks)
  return result(model, history, model.predict(_IMAGES[:9], verbose=0))


@program(staged="StatelessRandomUniformV2")
def rand_augment(callbacks):
  return _fit_images(callbacks, [keras.layers.RandAugment()])


@program(staged="StatelessRandomUniformV2")
def random_layers(callbacks):
  layers = keras.layers
  return _fit_images(callbacks, [
      layers.RandomFlip(), layers.RandomRotation(0.1), layers.RandomZoom(0.1), layers.RandomContrast(0.1),
      layers.RandomCrop(12, 12), layers.Rescaling(1 / 255)])


@program(staged="StatelessRandomUniformV2")
def random_layers_with_seeds(callbacks):
  layers = keras.layers
  return _fit_images(callbacks, [layers.RandomFlip(seed=3), layers.RandomTranslation(0.1, 0.1, seed=4)])


@program()
def mixed_precision(callbacks):
  keras.mixed_precision.set_global_policy("mixed_float16")
  try:
    return _fit_images(callbacks, [keras.layers.RandomBrightness(0.1), keras.layers.Normalization()])
  finally:
    keras.mixed_precision.set_global_policy("float32")


def _structured(**options):
  color, size = keras.Input((1,), name="color", dtype="string"), keras.Input((1,), name="size")
  lookup = keras.layers.StringLookup(vocabulary=["red", "green", "blue"])
  ids = lookup(color)
  buckets = keras.layers.Discretization([0.2, 0.5, 0.8])(size)
  crossed = keras.layers.HashedCrossing(16, output_mode="one_hot")((ids, buckets))
  hidden = keras.layers.Concatenate()([crossed, keras.layers.Flatten()(keras.layers.Embedding(5, 4)(ids)), size])
  model = keras.Model({"color": color, "size": size}, keras.layers.Dense(1)(keras.layers.Dropout(0.2)(hidden)))
  model.compile("adam", "mse", metrics=["mae"], **options)
  return model


def _rows(*, weighted=False):
  parts = {"color": _COLORS, "size": _SIZES}, _PRICES
  data = tf.data.Dataset.from_tensor_slices((*parts, _SIZES[:, 0]) if weighted else parts)
  return data.shuffle(50, seed=2).batch(8)


@program(staged="LookupTableFindV2")
def several_steps_in_a_call(callbacks):
  model = _structured(steps_per_execution=5)
  history = model.fit(_rows(), validation_data=_rows().take(4), epochs=3, verbose=0, callbacks=callbacks)
  return result(model, history, model.evaluate(_rows(), verbose=0, callbacks=callbacks))


@program(staged="LookupTableFindV2")
def sample_weights(callbacks):
  model = _structured(weighted_metrics=["mae"])
  history = model.fit(_rows(weighted=True), epochs=3, verbose=0, callbacks=callbacks)
  return result(model, history)


@program(staged="LookupTableFindV2")
def callbacks_of_keras(callbacks):
  with tempfile.TemporaryDirectory() as folder:
    model = _structured()
    history = model.fit(
        _rows(), validation_data=_rows().take(4), epochs=8, verbose=0, callbacks=[
            keras.callbacks.ModelCheckpoint(f"{folder}/best.keras", save_best_only=True),
            keras.callbacks.ModelCheckpoint(f"{folder}/{{batch}}.weights.h5", save_freq=5, save_weights_only=True),
            keras.callbacks.EarlyStopping(patience=1, min_delta=0.05, restore_best_weights=True),
            keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9),
            keras.callbacks.CSVLogger(f"{folder}/log.csv"),
            keras.callbacks.TensorBoard(f"{folder}/board", write_graph=False),
            keras.callbacks.TerminateOnNaN(),
            *callbacks])
    saved = keras.models.load_model(f"{folder}/best.keras")
    log = pathlib.Path(f"{folder}/log.csv").read_text()
  return result(model, history, saved.get_weights(), log)


@program(staged="LookupTableFindV2")
def class_weights(callbacks):
  text = keras.Input((), dtype="string")
  words = keras.layers.TextVectorization(vocabulary=["good", "bad", "the"], output_sequence_length=5)(text)
  mean = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(8, 4)(words))
  model = keras.Model(text, keras.layers.Dense(3, "softmax")(mean))
  model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
  data = tf.data.Dataset.from_tensor_slices((_TEXTS, _CLASSES)).batch(8)
  history = model.fit(
      data, epochs=3, verbose=0, callbacks=callbacks, class_weight={0: 1.0, 1: 2.0, 2: 0.5}, validation_data=data)
  return result(model, history, model.evaluate(data, verbose=0, callbacks=callbacks))


class OwnStep(keras.Model):
  """A model with a `train_step` of its own, a custom loop of gradients, and its own metric."""

  def __init__(self):
    super().__init__()
    self.words = keras.layers.TextVectorization(vocabulary=["good", "bad", "the"], output_mode="tf_idf",
                                                idf_weights=[1.0, 2.0, 0.5])
    self.out = keras.layers.Dense(3)
    self.noise = keras.layers.GaussianNoise(0.1, seed=5)
    self.tracker = keras.metrics.Mean(name="own")

  def call(self, texts, training=False):
    return self.out(self.noise(self.words(texts), training=training))

  def train_step(self, data):
    texts, classes = data
    with tf.GradientTape() as tape:
      logits = self(texts, training=True)
      loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(classes, logits))
    self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
    self.tracker.update_state(loss)
    return {"own": self.tracker.result()}

  @property
  def metrics(self):
    return [self.tracker]


@program(staged="StringSplit")
def own_train_step(callbacks):
  model = OwnStep()
  model.compile(keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.5, 30)))
  data = tf.data.Dataset.from_tensor_slices((_TEXTS, _CLASSES)).shuffle(30, seed=2).batch(7)
  return result(model, model.fit(data, epochs=3, verbose=0, callbacks=callbacks))


@program(staged="LookupTableFindV2")
def arrays(callbacks):
  model = _structured()
  history = model.fit(
      {"color": tf.constant(_COLORS), "size": _SIZES}, _PRICES, batch_size=8, epochs=3, verbose=0,
      callbacks=callbacks, validation_split=0.2, shuffle=False)
  return result(model, history)


@program(staged="LookupTableFindV2")
def shuffled_arrays(callbacks):
  model = _structured()
  rows = {"color": tf.constant(_COLORS), "size": _SIZES}
  history = model.fit(rows, _PRICES, batch_size=8, epochs=3, verbose=0, callbacks=callbacks)
  return result(model, history, model.predict(rows, verbose=0, callbacks=callbacks))


class Batches(keras.utils.PyDataset):
  """Batches by number, which Keras shuffles, with threads."""

  def __len__(self):
    return _ROWS // 8

  def __getitem__(self, index):
    some = slice(8 * index, 8 * index + 8)
    return {"color": tf.constant(_COLORS[some]), "size": _SIZES[some]}, _PRICES[some]


@program(staged="LookupTableFindV2")
def py_dataset(callbacks):
  model = _structured()
  history = model.fit(Batches(), epochs=3, verbose=0, callbacks=callbacks)
  return result(model, history)


@program(staged="LookupTableFindV2")
def py_dataset_with_workers(callbacks):
  model = _structured()
  history = model.fit(Batches(workers=2, max_queue_size=3), epochs=3, verbose=0, callbacks=callbacks, shuffle=False)
  return result(model, history)


@program(staged="LookupTableFindV2")
def generator(callbacks):

  def batches():
    number = 0
    while True:
      yield Batches()[number % 12]
      number += 1

  model = _structured()
  given = batches()
  history = model.fit(given, steps_per_epoch=7, epochs=3, verbose=0, callbacks=callbacks)
  return result(model, history)


class Loader:
  """What a data loader of another framework looks like."""

  def __len__(self):
    return 12

  def __iter__(self):
    return (Batches()[i] for i in range(12))


@program(staged="LookupTableFindV2")
def iterable(callbacks):
  model = _structured()
  return result(model, model.fit(iter(Loader()), epochs=1, verbose=0, callbacks=callbacks))


@program(staged="Bucketize")
def feature_space(callbacks):
  space = keras.utils.FeatureSpace(
      features={
          "color": keras.utils.FeatureSpace.string_categorical(num_oov_indices=1),
          "size": keras.utils.FeatureSpace.float_discretized(num_bins=4)
      },
      crosses=[keras.utils.FeatureSpace.cross(("color", "size"), crossing_dim=16)], output_mode="concat")
  space.adapt(_rows().unbatch().map(lambda row, _: {key: value[0] for key, value in row.items()}))
  encoded = space.get_encoded_features()
  model = keras.Model(space.get_inputs(), keras.layers.Dense(1)(encoded))
  model.compile("adam", "mse")
  return result(model, model.fit(_rows(), epochs=3, verbose=0, callbacks=callbacks))


@program(staged="LookupTableFindV2")
def ragged_input(callbacks):
  words = keras.Input((None,), dtype="string", ragged=True)
  ids = keras.layers.StringLookup(vocabulary=["good", "bad", "the"])(words)
  model = keras.Model(words, keras.layers.Dense(1)(Mean()(ids)))
  model.compile("adam", "mse")
  data = tf.data.Dataset.from_tensor_slices((tf.strings.split(_TEXTS), _PRICES)).batch(8)
  return result(model, model.fit(data, epochs=3, verbose=0, callbacks=callbacks))


class Mean(keras.layers.Layer):
  """The mean of the embeddings of ragged ids."""

  def build(self, shape):
    self.embeddings = self.add_weight((8, 4))

  def call(self, ids):
    return tf.reduce_mean(tf.gather(self.embeddings, ids.to_tensor() if isinstance(ids, tf.RaggedTensor) else ids), 1)

  def compute_output_spec(self, ids):
    return keras.KerasTensor((None, 4))


@program(staged="LookupTableFindV2")
def sparse_features(callbacks):
  words = keras.Input((1,), dtype="string")
  lookup = keras.layers.StringLookup(vocabulary=["red", "green", "blue"], output_mode="multi_hot", sparse=True)
  model = keras.Model(words, keras.layers.Dense(1)(lookup(words)))
  model.compile("adam", "mse")
  data = tf.data.Dataset.from_tensor_slices((_COLORS, _PRICES)).batch(8)
  return result(model, model.fit(data, epochs=3, verbose=0, callbacks=callbacks))


@program(staged="hashing_1/hash")
def several_outputs_and_averages_of_weights(callbacks):
  text = keras.Input((1,), dtype="string", name="text")
  hidden = keras.layers.Flatten()(keras.layers.Embedding(30, 4)(keras.layers.Hashing(30)(text)))
  price, kind = keras.layers.Dense(1, name="price")(hidden), keras.layers.Dense(3, "softmax", name="kind")(hidden)
  model = keras.Model(text, {"price": price, "kind": kind})
  optimizer = keras.optimizers.AdamW(
      1e-2, gradient_accumulation_steps=3, use_ema=True, ema_overwrite_frequency=4, clipnorm=1.0)
  model.compile(
      optimizer, {"price": "mse", "kind": "sparse_categorical_crossentropy"}, loss_weights={"price": 2.0, "kind": 0.5},
      metrics={"kind": ["accuracy"], "price": ["mae"]})
  weights = {"price": _SIZES[:, 0], "kind": 1 - _SIZES[:, 0]}
  data = tf.data.Dataset.from_tensor_slices(
      ({"text": _TEXTS[:, None]}, {"price": _PRICES, "kind": _CLASSES}, weights)).batch(8)
  history = model.fit(
      data, epochs=4, verbose=0, callbacks=[*callbacks, keras.callbacks.SwapEMAWeights(swap_on_epoch=True)],
      validation_data=data)
  return result(model, history)


main("keras")
