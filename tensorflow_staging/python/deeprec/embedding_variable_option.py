# SPDX-License-Identifier: Apache-2.0
"""DeepRec's options of an embedding variable, as its scripts make them for tables that are none."""

from typing import Any


class EmbeddingVariableOption:
  """Holds no option: its scripts make one, from None alone, also where no embedding variable will use it."""

  def __init__(self, *options: Any, **named_options: Any):
    """Checks that no option is set.

    Raises:
      ValueError: If an option is not None.
    """
    given = [repr(option) for option in options if option is not None]
    given += [f"{name}={option!r}" for name, option in named_options.items() if option is not None]
    if given:
      raise ValueError(
          f"tf.EmbeddingVariableOption takes only None, got {', '.join(given)}. This TensorFlow has no embedding"
          " variables: use a variable of fixed size with tf.feature_column.categorical_column_with_hash_bucket.")
