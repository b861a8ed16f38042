# SPDX-License-Identifier: Apache-2.0
"""`tensorflow_staging.SmartStage` with Keras 3: losses and weights are those without it, and lookups are staged."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tensorflow_staging

_COLORS = ["red", "green", "blue", "red"] * 32
_TEXTS = ["the good film", "a bad film", "good good", "bad the bad"] * 32


def _structured():
  color = keras.Input((1,), name="color", dtype="string")
  size = keras.Input((1,), name="size")
  colors = keras.layers.StringLookup(vocabulary=["red", "green", "blue"], output_mode="one_hot")(color)
  # No output_mode="one_hot" here: Keras 3.12 gives such a Discretization a wrong shape, also without a stage.
  sizes = keras.layers.Discretization([1.5, 2.5, 3.5])(size)
  sizes = keras.layers.Flatten()(keras.layers.Embedding(4, 4)(sizes))
  hidden = keras.layers.Dense(8, "relu")(keras.layers.Concatenate()([colors, sizes]))
  model = keras.Model([color, size], keras.layers.Dense(1)(hidden))
  sizes = np.tile([[1.0], [2.0], [3.0], [4.0]], (32, 1)).astype("float32")
  data = tf.data.Dataset.from_tensor_slices(({"color": np.array(_COLORS)[:, None], "size": sizes}, sizes * sizes))
  return model, data.shuffle(100, seed=5).batch(8)


def _text():
  text = keras.Input((), dtype="string", name="text")
  words = keras.layers.TextVectorization(vocabulary=["a", "bad", "good", "the", "film"], output_sequence_length=4)(text)
  mean = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(8, 4)(words))
  model = keras.Model(text, keras.layers.Dense(1, "sigmoid")(keras.layers.Dropout(0.3)(mean)))
  labels = np.tile([[1.0], [0.0], [1.0], [0.0]], (32, 1)).astype("float32")
  return model, tf.data.Dataset.from_tensor_slices((_TEXTS, labels)).shuffle(100, seed=5).batch(8)


def _fit(make, callbacks, epochs: int = 3, steps_per_epoch=None, **options):
  # Another dataset: those that share a shuffle share its random state, too, and what is read ahead draws from it.
  keras.utils.set_random_seed(7)
  validation = make()[1].take(3)
  keras.utils.set_random_seed(7)
  model, data = make()
  model.compile(keras.optimizers.Adam(0.05), "mse", metrics=["mae"], **options)
  history = model.fit(
      data, epochs=epochs, verbose=0, callbacks=callbacks, steps_per_epoch=steps_per_epoch,
      validation_data=validation).history
  return model, history


def _assert_same(one, other) -> None:
  (model, history), (other_model, other_history) = one, other
  assert history == other_history
  for weights, others in zip(model.get_weights(), other_model.get_weights(), strict=True):
    np.testing.assert_array_equal(weights, others)


@pytest.mark.parametrize("make, node", [(_structured, "LookupTableFindV2"), (_text, "StringSplitV2")])
def test_losses_and_weights_are_those_without_the_callback(make, node):
  callback = tensorflow_staging.SmartStage()
  staged = _fit(make, [callback])
  _assert_same(staged, _fit(make, []))
  by_name = {stage.name: stage for stage in tensorflow_staging.stats(callback)}
  assert by_name["train"].taken == 3 * 16
  assert by_name["evaluate"].taken == 3 * 3
  for step in tensorflow_staging.explain(callback).steps:
    assert any(name.endswith(node) for name in step.nodes)


def test_the_model_has_its_own_functions_again():
  model, _ = _fit(_structured, [tensorflow_staging.SmartStage()], epochs=1)
  for function in (model.train_function, model.test_function):
    assert function is None or type(function).__name__ == "function"


def test_evaluate_alone_is_staged():
  model, data = _structured()
  model.compile("sgd", "mse")
  data = data.take(5).cache()  # Shuffled once.
  expected = model.evaluate(data, verbose=0)
  callback = tensorflow_staging.SmartStage()
  assert model.evaluate(data, verbose=0, callbacks=[callback]) == expected
  stage, = tensorflow_staging.stats(callback)
  assert stage.taken == 5


@pytest.mark.parametrize("several", [4, 5])
@pytest.mark.parametrize("change", [lambda data: data, lambda data: data.repeat()], ids=["finite", "endless"])
def test_several_steps_in_a_call(several, change):
  make = lambda: (lambda model, data: (model, change(data)))(*_structured())
  options = {"steps_per_execution": several, "steps_per_epoch": None}
  if change(tf.data.Dataset.range(1)).cardinality() < 0:
    options["steps_per_epoch"] = 11  # No multiple: Keras makes the steps of the last call all the same.
  callback = tensorflow_staging.SmartStage()
  _assert_same(_fit(make, [callback], **options), _fit(make, [], **options))
  by_name = {stage.name: stage for stage in tensorflow_staging.stats(callback)}
  assert by_name["train"].taken >= 3 * 11


def test_several_steps_in_a_call_with_data_of_an_unknown_length():
  make = lambda: (lambda model, data: (model, data.filter(lambda *_: True)))(*_structured())
  callback = tensorflow_staging.SmartStage()
  _assert_same(_fit(make, [callback], steps_per_execution=4), _fit(make, [], steps_per_execution=4))
  by_name = {stage.name: stage for stage in tensorflow_staging.stats(callback)}
  assert by_name["train"].taken >= 3 * 11, by_name


def test_several_eager_steps_in_a_call():
  options = {"steps_per_execution": 3, "run_eagerly": True, "epochs": 1}
  callback = tensorflow_staging.SmartStage()
  _assert_same(_fit(_structured, [callback], **options), _fit(_structured, [], **options))
  assert "runs eagerly" in str(tensorflow_staging.stats(callback))


@pytest.mark.parametrize("options", [{}, {"shuffle": False}, {"batch_size": 50}])
def test_several_steps_in_a_call_with_arrays(options):
  texts, labels = tf.constant(_TEXTS), np.tile([[1.0], [0.0]], (64, 1)).astype("float32")

  def fit(callbacks):
    keras.utils.set_random_seed(7)
    model, data = _text()
    model.compile("adam", "mse", steps_per_execution=3)
    # tf.data does not know how many elements this has.
    validation = data.take(5).cache().filter(lambda *_: True)
    history = model.fit(
        texts, labels, epochs=2, verbose=0, callbacks=callbacks, validation_data=validation,
        **{"batch_size": 9, **options}).history
    return model, history

  callback = tensorflow_staging.SmartStage()
  _assert_same(fit([callback]), fit([]))
  by_name = {stage.name: stage.taken for stage in tensorflow_staging.stats(callback)}
  assert by_name == {"train": 2 * -(-128 // options.get("batch_size", 9)), "evaluate": 2 * 5}, by_name


@pytest.mark.parametrize("options", [{}, {"steps_per_execution": 3}])
def test_random_layers_run_ahead(options):
  images = np.random.RandomState(1).rand(40, 8, 8, 3).astype("float32")

  def make():
    model = keras.Sequential([
        keras.Input((8, 8, 3)), keras.layers.RandomFlip(), keras.layers.RandomRotation(0.2),
        keras.layers.RandomBrightness(0.1), keras.layers.GaussianNoise(0.1), keras.layers.Flatten(),
        keras.layers.Dense(4, name="hidden"), keras.layers.Dropout(0.5, name="dropout"), keras.layers.Dense(1)])
    return model, tf.data.Dataset.from_tensor_slices((images, images[:, 0, 0, :1])).batch(8)

  callback = tensorflow_staging.SmartStage()
  staged, plain = _fit(make, [callback], **options), _fit(make, [], **options)
  _assert_same(staged, plain)
  for one, other in zip(staged[0].non_trainable_variables, plain[0].non_trainable_variables, strict=True):
    np.testing.assert_array_equal(one, other)
  train, = (step for step in tensorflow_staging.explain(callback).steps if step.name == "train")
  for layer in ("random_flip", "random_rotation", "random_brightness", "gaussian_noise"):
    assert any(layer in node and "StatelessRandom" in node for node in train.nodes), layer
  # The mask of a dropout in the model meets no element ahead.
  assert not any("dropout" in node for node in train.nodes)


def _text_in_map():
  """Returns the model of `_text` without its lookup layer, which is in the dataset."""
  words = keras.layers.TextVectorization(vocabulary=["a", "bad", "good", "the", "film"], output_sequence_length=4)
  text = keras.Input((4,), dtype="int64", name="text")
  mean = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(8, 4)(text))
  model = keras.Model(text, keras.layers.Dense(1, "sigmoid")(keras.layers.Dropout(0.3)(mean)))
  labels = np.tile([[1.0], [0.0], [1.0], [0.0]], (32, 1)).astype("float32")
  data = tf.data.Dataset.from_tensor_slices((_TEXTS, labels)).shuffle(100, seed=5).batch(8)
  return model, data.map(lambda text, label: (words(text), label))


def test_xla_compiles_the_rest_of_a_model_with_a_text_layer():
  callback = tensorflow_staging.SmartStage()
  with pytest.warns(UserWarning, match="Model doesn't support `jit_compile=True`"):
    staged = _fit(_text, [callback], jit_compile=True)
  _assert_same(staged, _fit(_text_in_map, [], jit_compile=True))
  for step in tensorflow_staging.explain(callback).steps:
    assert "is compiled by XLA" in str(step)
  # Without the callback, XLA cannot compile it.
  assert not staged[0].jit_compile
  staged[0].evaluate(_text()[1].take(1), verbose=0)


@pytest.mark.parametrize("several", [1, 3])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_predict_is_staged(several, jit_compile):
  model, data = _text()
  model.compile("sgd", "mse", steps_per_execution=several, jit_compile=jit_compile)
  texts = data.map(lambda text, _: text).take(11).cache()  # Shuffled once.
  expected = model.predict(texts, verbose=0)
  own = model.predict_function
  callback = tensorflow_staging.SmartStage()
  predicted = model.predict(texts, verbose=0, callbacks=[callback])
  compare = np.testing.assert_allclose if jit_compile else np.testing.assert_array_equal
  compare(predicted, expected, **({"rtol": 1e-5} if jit_compile else {}))
  stage, = tensorflow_staging.stats(callback)
  # Each call takes one record, and the last one reads fewer elements.
  assert stage.taken == -(-11 // several)
  assert any("StringSplitV2" in node for step in tensorflow_staging.explain(callback).steps for node in step.nodes)
  assert ("is compiled by XLA" in str(tensorflow_staging.explain(callback))) == jit_compile
  assert model.predict_function is own
  np.testing.assert_array_equal(model.predict(texts, verbose=0), expected)


_UNKNOWN = lambda data: data.filter(lambda _: True)


@pytest.mark.parametrize("several, change", [(1, _UNKNOWN), (3, _UNKNOWN), (3, lambda data: data.repeat())])
def test_predict_of_data_of_an_unknown_length(several, change):
  model, data = _text()
  model.compile("sgd", "mse", steps_per_execution=several)
  texts = change(data.map(lambda text, _: text).take(11).cache())
  steps = 14 if texts.cardinality() == tf.data.INFINITE_CARDINALITY else None
  expected = model.predict(texts, verbose=0, steps=steps)
  callback = tensorflow_staging.SmartStage()
  np.testing.assert_array_equal(model.predict(texts, verbose=0, steps=steps, callbacks=[callback]), expected)
  stage, = tensorflow_staging.stats(callback)
  assert stage.name == "predict" and stage.taken, stage


def test_predict_within_fit_and_eagerly():
  model, data = _structured()
  model.compile("sgd", "mse", run_eagerly=True)
  rows = data.map(lambda row, _: row).take(3).cache()
  expected = model.predict(rows, verbose=0)
  callback = tensorflow_staging.SmartStage()
  np.testing.assert_array_equal(model.predict(rows, verbose=0, callbacks=[callback]), expected)
  assert "runs eagerly" in str(tensorflow_staging.stats(callback))

  class Predict(keras.callbacks.Callback):

    def on_train_batch_end(self, batch, logs=None):
      if batch == 2:
        given = self.model.predict(rows, verbose=0, callbacks=[callback])
        np.testing.assert_array_equal(given, self.model.predict(rows, verbose=0))
        np.testing.assert_array_equal(given[:8], self.model.predict_on_batch(next(iter(rows))))

  _assert_same(_fit(_structured, [Predict(), callback]), _fit(_structured, []))


def _with_a_gpu(kind=None):
  """Stands for `tf.config.list_physical_devices` on a machine with a GPU, where Keras's "auto" stands for XLA."""
  return [tf.config.PhysicalDevice(f"/physical_device:{name}:0", name) for name in ("CPU", "GPU")
          if kind in (None, name)]


@pytest.mark.parametrize("options", [{}, {"jit_compile": "auto"}])
def test_auto_compiles_where_it_compiles_a_model_without_such_layers(monkeypatch, options):
  reports = {}
  for place in ("cpu", "gpu"):
    if place == "gpu":
      monkeypatch.setattr(tf.config, "list_physical_devices", _with_a_gpu)
    callback = tensorflow_staging.SmartStage()
    staged = _fit(_text, [callback], **options)
    plain = _fit(_text_in_map, [], **options)
    assert plain[0].jit_compile == (place == "gpu") and not staged[0].jit_compile
    _assert_same(staged, plain)
    reports[place] = str(tensorflow_staging.explain(callback))
  assert "is compiled by XLA" in reports["gpu"] and "is compiled by XLA" not in reports["cpu"]


def test_no_xla_where_the_program_does_not_want_it(monkeypatch):
  monkeypatch.setattr(tf.config, "list_physical_devices", _with_a_gpu)
  callback = tensorflow_staging.SmartStage()
  _fit(_text, [callback], jit_compile=False)
  assert "is compiled by XLA" not in str(tensorflow_staging.explain(callback))


def test_another_backend_of_keras_is_left_alone(monkeypatch):
  expected = _fit(_structured, [])
  monkeypatch.setattr("keras.src.backend.config.backend", lambda: "another")
  callback = tensorflow_staging.SmartStage()
  staged = _fit(_structured, [callback])
  _assert_same(staged, expected)
  rows = _structured()[1].map(lambda row, _: row).take(2).cache()
  predicted = [staged[0].predict(rows, verbose=0, callbacks=callbacks) for callbacks in ([], [callback])]
  np.testing.assert_array_equal(*predicted)
  told = "Keras's backend is another, and only functions of TensorFlow have stages."
  assert str(tensorflow_staging.stats(callback)) == f"no stage has run: {told}"
  assert str(tensorflow_staging.explain(callback)) == f"'fit' runs without a stage: {told}"
