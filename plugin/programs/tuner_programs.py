# SPDX-License-Identifier: Apache-2.0
"""KerasTuner: searches, which copy their callbacks for each trial."""

import tempfile

import keras
import keras_tuner
import numpy as np
import tensorflow as tf
from comparison import main
from comparison import program
from comparison import result

_RANDOM = np.random.RandomState(0)
_WORDS = _RANDOM.choice(list("abcdef"), [64, 1])
_PRICES = (_WORDS == "a").astype("float32")


def _build(space):
  words = keras.Input((1,), dtype="string")
  hidden = keras.layers.StringLookup(vocabulary=list("abcde"), output_mode="one_hot")(words)
  hidden = keras.layers.Dense(space.Int("units", 2, 8), space.Choice("activation", ["relu", "tanh"]))(hidden)
  model = keras.Model(words, keras.layers.Dense(1)(hidden))
  model.compile(keras.optimizers.Adam(space.Float("rate", 1e-3, 1e-1, sampling="log")), "mse")
  return model


def _data():
  return tf.data.Dataset.from_tensor_slices((_WORDS, _PRICES)).shuffle(30, seed=1).batch(8)


def _search(callbacks, tuner_class, **options):
  with tempfile.TemporaryDirectory() as folder:
    tuner = tuner_class(_build, objective="val_loss", seed=3, directory=folder, **options)
    tuner.search(_data(), validation_data=_data().take(3), epochs=3, verbose=0, callbacks=callbacks)
    trials = [(trial.hyperparameters.values, trial.score) for trial in tuner.oracle.get_best_trials(9)]
    best, = tuner.get_best_models(1)
    # The search has copied the callbacks.
    history = best.fit(_data(), epochs=1, verbose=0, callbacks=callbacks)
    return result(best, history, trials)


@program(staged="LookupTableFindV2")
def random_search(callbacks):
  return _search(callbacks, keras_tuner.RandomSearch, max_trials=3)


@program(staged="LookupTableFindV2")
def hyperband(callbacks):
  return _search(callbacks, keras_tuner.Hyperband, max_epochs=3)


@program(staged="LookupTableFindV2")
def several_executions_of_a_trial(callbacks):
  return _search(callbacks, keras_tuner.BayesianOptimization, max_trials=2, executions_per_trial=2)


main("keras-tuner")
