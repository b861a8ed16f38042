# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's search and cross-validation, with the wrappers of SciKeras and of Keras itself."""

import keras
import numpy as np
from comparison import main
from comparison import program
from keras.wrappers import SKLearnRegressor
from scikeras.wrappers import KerasRegressor
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.model_selection import cross_val_score

_RANDOM = np.random.RandomState(0)
_X = _RANDOM.rand(60, 2).astype("float32")
_Y = (_X[:, 0] > 0.5).astype("float32") + _X[:, 1]


def _build(units=3, **_):
  x = keras.Input((2,))
  buckets = keras.layers.Discretization([0.2, 0.5, 0.8], output_mode="one_hot")(x[:, :1])
  hidden = keras.layers.Concatenate()([buckets, keras.layers.Hashing(8, output_mode="one_hot")(x[:, 1:])])
  model = keras.Model(x, keras.layers.Dense(1)(keras.layers.Dense(units, "relu")(hidden)))
  model.compile("adam", "mse")
  return model


@program(staged="Bucketize")
def scikeras_regressor(callbacks):
  regressor = KerasRegressor(
      _build, callbacks=callbacks or None, epochs=3, verbose=0, random_state=4, batch_size=8, shuffle=False)
  copy = clone(regressor)
  copy.fit(_X, _Y)
  regressor.fit(_X, _Y)
  return [copy.history_, copy.predict(_X, verbose=0), regressor.model_.get_weights(), regressor.score(_X, _Y)]


@program(staged="Bucketize")
def keras_regressor(callbacks):
  options = {"epochs": 3, "verbose": 0, "shuffle": False, "callbacks": callbacks}
  regressor = SKLearnRegressor(lambda X, y: _build(), fit_kwargs=options)
  regressor.fit(_X, _Y)
  return [regressor.history_.history, regressor.predict(_X)]


@program(staged="Bucketize")
def grid_search(callbacks):
  regressor = KerasRegressor(
      _build, units=2, callbacks=callbacks or None, epochs=2, verbose=0, random_state=4, batch_size=8)
  search = GridSearchCV(regressor, {"units": [2, 5]}, cv=2, error_score="raise")
  search.fit(_X, _Y)
  regressor.fit(_X, _Y)
  return [search.cv_results_["mean_test_score"], search.best_estimator_.predict(_X), regressor.predict(_X)]


@program(staged="Bucketize")
def cross_validation(callbacks):
  regressor = KerasRegressor(_build, callbacks=callbacks or None, epochs=2, verbose=0, random_state=4)
  regressor.fit(_X, _Y)
  return [cross_val_score(regressor, _X, _Y, cv=3, error_score="raise"), regressor.predict(_X)]


main("scikeras", "scikit-learn")
