# SPDX-License-Identifier: Apache-2.0
"""What a model is, and its graph on any source of features."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any
from typing import NamedTuple

import tensorflow as tf

from modelzoo.base import formats
from modelzoo.base import optimizers
from modelzoo.base import seeds
from modelzoo.base.settings import Settings

Features = dict[str, Any]

NAMES = ("dlrm", "din", "dien", "dssm", "deepfm", "wide_and_deep")


class Output(NamedTuple):
  """What a model predicts."""

  # The log-odds of a click; float32, shape [batch].
  logits: tf.Tensor
  # A further loss of training, if the model has one; a scalar.
  auxiliary_loss: tf.Tensor | None = None


@dataclasses.dataclass(frozen=True)
class Model:
  """A model: its data, its hyperparameters, and its functions."""

  name: str
  format: formats.Format
  # The class of its hyperparameters, whose defaults are the paper's.
  hyperparameters: type[Settings]
  # Computes, given the parsed features and the hyperparameters, what `predict` uses. It has no variables, so a stage
  # can run it ahead of the step.
  prepare: Callable[[Features, Any], Features]
  # Computes the output, given what `prepare` returned, the hyperparameters, and whether it is for training.
  predict: Callable[[Features, Any, bool], Output]
  # Adds the op that trains the variables, given the loss and the hyperparameters.
  train: Callable[[tf.Tensor, Any], tf.Operation] = optimizers.minimize


class Built(NamedTuple):
  """The graph of a model."""

  # The mean of the cross-entropy in nats, with the auxiliary loss in training; a scalar.
  loss: tf.Tensor
  # The probabilities of a click; float32, shape [batch].
  predictions: tf.Tensor
  # Runs one step; None without training.
  train_op: tf.Operation | None


def load(name: str) -> Model:
  """Returns a model by its name.

  Raises:
    ValueError: There is no such model.
  """
  if name not in NAMES:
    raise ValueError(f"name is {name!r}, but must be one of {', '.join(NAMES)}")
  return importlib.import_module(f"modelzoo.{name}.train").MODEL


def build(
    model: Model, features: Features, labels: tf.Tensor, hyperparameters: Settings, *, training: bool = True,
    seed: int = 0) -> Built:
  """Adds a model to the default graph.

  Args:
    model: The model.
    features: What `model.prepare` returned.
    labels: 0.0 or 1.0 for each row; shape [batch].
    hyperparameters: Of the model's class.
    training: Whether to add the op that trains.
    seed: Determines the initial values of the variables.
  """
  global_step = tf.train.get_or_create_global_step()
  with seeds.variable_scope(seed):
    output = model.predict(features, hyperparameters, training)
  with tf.name_scope("loss"):
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=output.logits)
    loss = tf.reduce_mean(losses)
    if training and output.auxiliary_loss is not None:
      loss += output.auxiliary_loss
  predictions = tf.sigmoid(output.logits, name="predictions")
  if not training:
    return Built(loss, predictions, None)
  trained = model.train(loss, hyperparameters)
  # The gradients are not made to wait for these updates: the gradient of a loop adds ops to the loop itself, and the
  # updates may depend on the loop's results, so that the loop would wait for itself.
  with tf.control_dependencies([trained, *tf.get_collection(tf.GraphKeys.UPDATE_OPS)]):
    train_op = tf.assign_add(global_step, 1, use_locking=True).op
  return Built(loss, predictions, train_op)
