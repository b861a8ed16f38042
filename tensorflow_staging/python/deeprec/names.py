# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.use_deeprec_names`: the names that DeepRec's scripts use beside those of stages."""

import sys
import types
from typing import Any

from tensorflow.python.feature_column import sequence_feature_column
from tensorflow.python.platform import tf_logging
from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python.deeprec import embedding_variable_option
from tensorflow_staging.python.deeprec import linear
from tensorflow_staging.python.deeprec import sequence_input_layer
from tensorflow_staging.python.deeprec import version_answer

_ROOT = "tensorflow"
_CONTRIB = f"{_ROOT}.contrib"

# What `tf.contrib` has, by module.
_NAMES = {
    f"{_CONTRIB}.feature_column": {
        "sequence_input_layer": sequence_input_layer.sequence_input_layer,
        "sequence_categorical_column_with_hash_bucket":
            sequence_feature_column.sequence_categorical_column_with_hash_bucket,
    },
    f"{_CONTRIB}.rnn.python.ops.core_rnn_cell": {
        "_Linear": linear.Linear,
    },
}


@tf_export("staging.use_deeprec_names")
def use_deeprec_names() -> None:
  """Lets scripts that are written for DeepRec run unchanged, as far as this wheel has what they ask for.

  From the call on, in this process alone:

  * the version that `pkg_resources` reports of TensorFlow contains "deeprec", for which such scripts
    look before they use a stage;
  * `tf.contrib.feature_column.sequence_input_layer` and `core_rnn_cell._Linear` are there;
  * `tf.EmbeddingVariableOption` is there, and refuses all options but None.

  Nothing of it is there without the call, because other programs take these names for signs of
  DeepRec or of TensorFlow 1. Calling again changes nothing. `python -m
  tensorflow_staging.python.deeprec script.py` makes the call for a script that is not to be edited.

  For example, at the top of a script:

  ```python
  import tensorflow as tf

  tf.staging.use_deeprec_names()
  ```
  """
  if not isinstance(sys.modules.get(_CONTRIB), _Contrib):
    for name, values in _NAMES.items():
      vars(_module(name)).update(values)
    root = sys.modules[_ROOT]
    root.contrib = sys.modules[_CONTRIB]
    root.EmbeddingVariableOption = embedding_variable_option.EmbeddingVariableOption
    tf_logging.info(
        "TensorFlow has the names that scripts for DeepRec use. Of DeepRec's features, it has the stages and the"
        " lookups ahead of the step.")
  version_answer.contain_deeprec()


class _Contrib(types.ModuleType):
  """A module of `tf.contrib`, which says what there is instead of what it lacks."""

  def __getattr__(self, name: str) -> Any:
    if name.startswith("__"):
      raise AttributeError(name)
    there = sorted(f"{module}.{value}" for module, values in _NAMES.items() for value in values)
    raise AttributeError(
        f"{self.__name__}.{name} is not there. TensorFlow 2 has no contrib; tf.staging.use_deeprec_names() adds only"
        f" {', '.join(there)}.")


def _module(name: str) -> types.ModuleType:
  """Returns the module of a name, which it makes with the packages that it is in."""
  if name in sys.modules:
    return sys.modules[name]
  module = sys.modules[name] = _Contrib(name)
  module.__path__ = []
  package, _, last = name.rpartition(".")
  if package != _ROOT:
    setattr(_module(package), last, module)
  return module
