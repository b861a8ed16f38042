# SPDX-License-Identifier: Apache-2.0
"""Keras models with `jit_compile=True` and `tf.staging.SmartStage`, compared with the same layers in `dataset.map`."""

import cases
import keras_cases
import numpy as np
import tensorflow as tf

layers = tf.keras.layers


def prepared_by_hand(build, jit):
  """Trains with the layers before "embedding" in `dataset.map`, and returns the history and the weights."""
  tf.keras.backend.clear_session()
  tf.keras.utils.set_random_seed(5)
  model, x = build(jit)
  prepare = tf.keras.Model(model.inputs, model.get_layer("embedding").input)
  trained = tf.keras.Input(prepare.output_shape[1:], dtype=prepare.output.dtype)
  y = trained
  for layer in model.layers[model.layers.index(model.get_layer("embedding")):]:
    y = layer(y)
  rest = tf.keras.Model(trained, y)
  rest.compile("sgd", "mse", metrics=["mae"], jit_compile=jit, steps_per_execution=model._steps_per_execution.numpy())
  mapped = keras_cases.data(x).map(lambda rows, target: (prepare(rows), target))
  validation = keras_cases.data(x, 20).map(lambda rows, target: (prepare(rows), target))
  history = rest.fit(mapped, epochs=3, validation_data=validation, verbose=0).history
  return history, [w.numpy().tolist() for w in rest.trainable_weights]


def with_xla(build):
  """Trains a model with jit_compile and with lookups, which XLA cannot compile."""
  expected = prepared_by_hand(build, True)
  tf.keras.backend.clear_session()
  tf.keras.utils.set_random_seed(5)
  model, x = build(True)
  callback = tf.staging.SmartStage(capacity=3)
  history = model.fit(
      keras_cases.data(x), epochs=3, validation_data=keras_cases.data(x, 20), verbose=0, callbacks=[callback]).history
  assert history == expected[0], f"{history} != {expected[0]}"
  assert [w.numpy().tolist() for w in model.trainable_weights] == expected[1]
  for attribute in ("train_function", "test_function"):
    assert callback._steps[attribute].why_not is None, callback._steps[attribute].why_not
  return model, callback


def lookups_for_xla(jit, **options):
  words = tf.keras.Input((3,), dtype=tf.string)
  lookup = layers.StringLookup(vocabulary=list("abcde"))
  hidden = layers.Flatten()(layers.Embedding(50, 4, name="embedding")(lookup(words)))
  model = tf.keras.Model(words, layers.Dense(1)(layers.Dense(4, "relu")(hidden)))
  model.compile("sgd", "mse", metrics=["mae"], jit_compile=jit, **options)
  return model, keras_cases.WORDS


def case_xla_compiles_a_model_with_a_lookup():
  model, callback = with_xla(lookups_for_xla)
  got = model.predict(keras_cases.WORDS, verbose=0, callbacks=[callback])
  assert callback._steps["predict_function"].why_not is None
  model.compile()
  np.testing.assert_allclose(got, model.predict(keras_cases.WORDS, verbose=0), rtol=1e-5)


def case_xla_compiles_a_model_whose_counts_depend_on_a_lookup():
  def build(jit):
    words = tf.keras.Input((3,), dtype=tf.string)
    counts = layers.StringLookup(vocabulary=list("abcde"), output_mode="multi_hot")(words)
    # The name at which the model is cut.
    model = tf.keras.Model(words, layers.Dense(1)(layers.Dense(4, "relu", name="embedding")(counts)))
    model.compile("sgd", "mse", metrics=["mae"], jit_compile=jit)
    return model, keras_cases.WORDS

  with_xla(build)


def case_xla_compiles_several_steps_per_execution():
  with_xla(lambda jit: lookups_for_xla(jit, steps_per_execution=3))


if __name__ == "__main__":
  cases.main(globals())
