# SPDX-License-Identifier: Apache-2.0
"""Keras 3 with another backend: there are no functions of TensorFlow, so the callback does nothing."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from comparison import main
from comparison import program
from comparison import result

_X = np.random.RandomState(0).rand(64, 3).astype("float32")


@program(why_not="Keras's backend is jax")
def backend_jax(callbacks):
  x = keras.Input((3,))
  model = keras.Model(x, keras.layers.Dense(1)(keras.layers.Rescaling(0.5)(x)))
  model.compile("adam", "mse")
  history = model.fit(
      _X, _X[:, :1], epochs=2, batch_size=8, verbose=0, callbacks=callbacks, validation_split=0.2)
  return result(
      model, history, model.evaluate(_X, _X[:, :1], verbose=0, callbacks=callbacks),
      model.predict(_X, verbose=0, callbacks=callbacks))


main("keras", "jax")
