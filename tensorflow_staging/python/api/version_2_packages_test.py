# SPDX-License-Identifier: Apache-2.0
"""Packages that are written for TensorFlow 2's root get it under both roots, and programs keep theirs."""

import pytest

from tensorflow_staging.python.testing import parallel_programs
from tensorflow_staging.python.testing import test_util

# The root's module is that of the same version.
_TRAINED = [("estimator", "1"), ("compat.v2.estimator", "1"), ("estimator", "2"), ("compat.v1.estimator", "2")]

# Trains each head, and each canned Estimator, of a module with default arguments.
_TRAIN = """
import inspect
import operator
import tempfile
import tensorflow as tf
from tensorflow_estimator.python.estimator.canned import head as head_lib

v1, v2 = tf.compat.v1, tf.compat.v2
columns = [v2.feature_column.numeric_column("x")]
HEADS = {
    "BinaryClassHead": ((), 1), "MultiClassHead": ((3,), 3), "RegressionHead": ((), 1), "MultiLabelHead": ((2,), 2),
    "PoissonRegressionHead": ((), 1), "LogisticRegressionHead": ((), 1), "MultiHead": (None, 1)}
NEEDS = {
    "hidden_units": [2], "dnn_hidden_units": [2], "dnn_feature_columns": columns, "linear_feature_columns": columns,
    "feature_columns": columns}


def rows(labels):
  return v1.data.Dataset.from_tensor_slices(({"x": [[1.], [2.], [3.], [4.]]}, labels)).batch(2)


def data():
  return rows([[0], [1], [0], [1]])


def multi_data():
  return rows({"a": [[0.], [1.], [0.], [1.]]})


def wide_data():
  return rows([[0, 1], [1, 1], [0, 0], [1, 0]])


def head_named(module, name):
  arguments = HEADS[name][0]
  return module.MultiHead([module.RegressionHead(name="a")]) if arguments is None else getattr(module, name)(*arguments)


def train_head(module, name):
  head, size = head_named(module, name), HEADS[name][1]

  def model_fn(features, labels, mode):
    weights = v1.get_variable("w", [1, size], initializer=v1.zeros_initializer())
    logits = v1.matmul(features["x"], weights)
    if name == "MultiHead":
      logits = {"a": logits}
    step = lambda loss: v1.train.GradientDescentOptimizer(.1).minimize(loss, v1.train.get_global_step())
    return head.create_estimator_spec(features, mode, logits, labels=labels, train_op_fn=step)

  estimator = module.Estimator(model_fn, tempfile.mkdtemp())
  run(estimator, {"MultiHead": multi_data, "MultiLabelHead": wide_data}.get(name, data))


def train_canned(module, name):
  made = getattr(module, name)
  arguments = {key: value for key, value in NEEDS.items() if key in inspect.signature(made).parameters}
  if name.endswith("Estimator"):
    # Those of version 1 have optimizers that only its own heads take, in the official wheel, too.
    is_v2 = made is getattr(v2.estimator, name)
    arguments["head"] = module.RegressionHead() if is_v2 else head_lib._regression_head()
  run(made(model_dir=tempfile.mkdtemp(), **arguments), data)


def run(estimator, input_fn):
  estimator.train(input_fn, steps=1)
  assert estimator.get_variable_value("global_step") == 1


module = operator.attrgetter("{module}")(tf)
kinds = ("Classifier", "Regressor", "Estimator")
for name in [name for name in dir(module) if name in HEADS or (name.endswith(kinds) and name != "Estimator")]:
  v1.reset_default_graph()
  try:
    (train_head if name in HEADS else train_canned)(module, name)
  except Exception as error:
    print(name, type(error).__name__, str(error)[:300].replace(chr(10), " "))
  else:
    print(name, "trained")
"""

_CANNED = [
    f"{kind}{what}" for kind in ("Baseline", "DNN", "Linear", "DNNLinearCombined")
    for what in ("Classifier", "Regressor", "Estimator")
]
_HEADS = [
    "BinaryClassHead", "LogisticRegressionHead", "MultiClassHead", "MultiHead", "MultiLabelHead",
    "PoissonRegressionHead", "RegressionHead"
]

# Imports a package before TensorFlow, then prints which modules of such packages have the root of the program.
_ROOTS = """
import importlib
import sys

importlib.import_module({first!r})
import tensorflow as tf
import keras.src.utils.sidecar_evaluator
import tensorboard.plugins.mesh.summary
import tensorboard.plugins.hparams.api
from tensorflow_estimator.python.estimator.canned import dnn
from tensorflow_staging.python.api import version_2_packages

root = sys.modules["tensorflow"]
print([name for name, module in list(sys.modules.items()) if name.partition(".")[0] in version_2_packages.PACKAGES
       and any(value is root for value in vars(module).values())])
for seen in (tf, dnn.tf):
  print(hasattr(seen, "Session"), seen.losses.Reduction.SUM_OVER_BATCH_SIZE, seen._major_api_version,
        seen.compat is tf.compat, seen.__version__ == tf.__version__, seen.__file__ == tf.__file__)
assert dnn.tf.python is sys.modules["tensorflow.python"]
assert "keras" in dir(dnn.tf) and "Session" not in dir(dnn.tf)
try:
  dnn.tf.no_such_name
except AttributeError as error:
  print("no_such_name" in str(error))
"""
_FIRST = [
    "tensorflow", "tensorflow_estimator", "keras", "tensorboard.compat",
    "tensorflow_estimator.python.estimator.canned.baseline"
]


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
  sources = {(first, "1"): _ROOTS.format(first=first) for first in _FIRST}
  with parallel_programs.running_ahead(sources, tmp_path_factory) as output:
    yield output


@pytest.mark.parametrize("module, version", _TRAINED)
def test_every_head_and_every_canned_estimator_trains(run_forked, tmp_path, module, version):
  lines = run_forked(_TRAIN.replace("{module}", module), tmp_path, api_version=version).splitlines()
  assert sorted(lines) == sorted(f"{name} trained" for name in _HEADS + _CANNED)


@pytest.mark.parametrize("first", _FIRST)
def test_the_packages_have_the_root_that_they_expect_whichever_is_imported_first(printed, first):
  modules, program, package, missing = printed(first, "1").splitlines()
  assert modules == "[]"
  assert program == "True weighted_sum_over_batch_size 1 True True True"
  assert package == "False sum_over_batch_size 2 True True True"
  assert missing == "True"


def test_a_module_keeps_its_loader_and_its_builtins(tmp_path):
  output = test_util.run_program(
      """
      import builtins
      import importlib.util
      import inspect
      import tensorflow as tf
      from tensorflow_estimator.python.estimator.canned import dnn

      print(type(dnn.__loader__).__name__, "class DNNClassifier" in inspect.getsource(dnn))
      print({name for name in vars(builtins) if dnn.__builtins__[name] is not getattr(builtins, name)})
      print(importlib.util.find_spec("keras.no_such_module"), inspect.getmodule(dnn.DNNClassifierV2) is dnn)
      """, tmp_path)
  assert output.splitlines() == ["SourceFileLoader True", "{'__import__'}", "None True"]
