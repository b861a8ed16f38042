# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1's `tf.contrib.feature_column.sequence_input_layer`, built on TensorFlow's feature columns."""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import Optional

from tensorflow.python.feature_column import feature_column
from tensorflow.python.framework import ops
from tensorflow.python.framework import tensor as tensor_lib
from tensorflow.python.ops import array_ops
from tensorflow.python.ops import check_ops
from tensorflow.python.ops import variable_scope


def sequence_input_layer(
    features: Mapping[str, Any],
    feature_columns: Iterable[Any],
    weight_collections: Optional[Iterable[str]] = None,
    trainable: bool = True,
) -> tuple[tensor_lib.Tensor, tensor_lib.Tensor]:
  """Returns sequences of dense rows, such as embeddings, and the lengths of the sequences.

  Args:
    features: The tensors of a batch, by key.
    feature_columns: Columns of sequences: embedding or indicator columns of
      `tf.feature_column.sequence_categorical_column_*`, and `sequence_numeric_column`.
    weight_collections: The names of further collections to which the variables are added.
    trainable: Whether the variables are also added to `GraphKeys.TRAINABLE_VARIABLES`.

  Returns:
    A tensor of shape `[batch, steps, width]`, which has the columns one beside the other, sorted by name, and an
    int64 tensor of shape `[batch]`. A run fails if the columns disagree on a length.

  Raises:
    ValueError: If there is no column, or an entry is no column of sequences.
  """
  columns = sorted(feature_columns, key=lambda column: column.name)
  if not columns:
    raise ValueError("feature_columns must have at least one column, got none.")
  for column in columns:
    if not hasattr(column, "_get_sequence_dense_tensor"):
      raise ValueError(f"feature_columns must be columns of sequences, got {column!r}.")
  collections = {*(weight_collections or []), ops.GraphKeys.GLOBAL_VARIABLES, ops.GraphKeys.MODEL_VARIABLES}
  with variable_scope.variable_scope(None, default_name="sequence_input_layer", values=list(features.values())):
    inputs = feature_column._LazyBuilder(features)
    rows, lengths = [], []
    for column in columns:
      with variable_scope.variable_scope(None, default_name=column._var_scope_name):
        dense, length = column._get_sequence_dense_tensor(
            inputs, weight_collections=sorted(collections), trainable=trainable)
        width = column._variable_shape.num_elements()
        rows.append(array_ops.reshape(dense, array_ops.concat([array_ops.shape(dense)[:2], [width]], axis=0)))
        lengths.append(length)
    equal = [
        check_ops.assert_equal(
            lengths[0], length,
            message=f"The columns {columns[0].name} and {column.name} disagree on the length of a sequence.")
        for column, length in zip(columns[1:], lengths[1:])
    ]
    with ops.control_dependencies(equal):
      return array_ops.concat(rows, axis=-1), array_ops.identity(lengths[0])
