# SPDX-License-Identifier: Apache-2.0
"""The optimizers, and the hyperparameters that choose one."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from modelzoo.base.settings import Settings
from modelzoo.base.settings import setting

_CLASSES = {"sgd": "GradientDescentOptimizer", "adagrad": "AdagradOptimizer", "adam": "AdamOptimizer"}


def optimizer_setting(default: str) -> str:
  """Returns the field of a model's hyperparameters that names its optimizer."""
  return setting(default, "the optimizer", choices=tuple(_CLASSES))


def learning_rate_setting(default: float) -> float:
  """Returns the field of a model's hyperparameters that is its learning rate."""
  return setting(default, "the learning rate", least=0.0)


@dataclasses.dataclass(frozen=True)
class Optimization(Settings):
  """How the variables are trained; base of the hyperparameters of models with one optimizer."""

  optimizer: str = optimizer_setting("adagrad")
  learning_rate: float = learning_rate_setting(0.01)


def minimize(loss: tf.Tensor, hyperparameters: Optimization) -> tf.Operation:
  """Returns the op that trains all variables."""
  optimizer = getattr(tf.train, _CLASSES[hyperparameters.optimizer])
  return optimizer(hyperparameters.learning_rate).minimize(loss)
