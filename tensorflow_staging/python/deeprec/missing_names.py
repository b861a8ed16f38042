# SPDX-License-Identifier: Apache-2.0
"""Errors of the API for names that DeepRec has and this wheel has not: they say what to use instead.

Without them, a program that is moved from DeepRec gets an AttributeError that looks like a broken installation.
"""

import types
from collections.abc import Callable
from typing import Any

_VARIABLES = (
    "DeepRec's embedding variables are not here: use a variable of fixed size, with"
    " tf.feature_column.categorical_column_with_hash_bucket or tf.strings.to_hash_bucket_fast")
_OPTIMIZERS = "DeepRec's optimizers are not here: use tf.compat.v1.train.AdamOptimizer, or AdagradOptimizer"
_FUSION = "DeepRec's fused lookups are not here: use tf.compat.v1.nn.safe_embedding_lookup_sparse"
_GROUPS = (
    "DeepRec's groups of embeddings are not here: use parameter servers with a partitioner, and do_async_embedding")
_OPTION = "tf.staging.use_deeprec_names() adds it, for scripts that set no option"

# By the module below the root: what to use instead of each name.
_INSTEAD = {
    "": {
        **dict.fromkeys((
            "get_embedding_variable", "get_multihash_variable", "get_dynamic_dimension_embedding_variable",
            "EmbeddingVariableConfig", "CounterFilter", "CBFFilter", "GlobalStepEvict", "L2WeightEvict",
            "StorageOption", "InitializerOption", "CheckpointOption", "MultihashOption"), _VARIABLES),
        "EmbeddingVariableOption": _OPTION,
    },
    "train": dict.fromkeys(
        ("AdamAsyncOptimizer", "AdagradDecayOptimizer", "AdagradDecayOptimizerV2", "AdamWOptimizer"), _OPTIMIZERS),
    "feature_column": {
        **dict.fromkeys((
            "categorical_column_with_embedding", "categorical_column_with_adaptive_embedding",
            "categorical_column_with_multihash"), _VARIABLES),
        "group_embedding_column_scope": _GROUPS,
    },
    "nn": {
        **dict.fromkeys(("fused_embedding_lookup_sparse", "fused_safe_embedding_lookup_sparse"), _FUSION),
        **dict.fromkeys(("group_embedding_lookup", "group_embedding_lookup_sparse"), _GROUPS),
        "safe_adaptive_embedding_lookup_sparse": _VARIABLES,
    },
    "config.experimental": {"enable_distributed_strategy": _GROUPS},
}


def install(root: types.ModuleType) -> None:
  """Lets the modules of a root say what to use instead of DeepRec's names.

  Args:
    root: `tensorflow`, whose API is complete.
  """
  for prefix, top in (("tf", root), ("tf.compat.v1", root.compat.v1)):
    for below, instead in _INSTEAD.items():
      module, name = top, prefix
      for part in filter(None, below.split(".")):
        module, name = getattr(module, part), f"{name}.{part}"
      _say_instead(module, name, instead)


def _say_instead(module: Any, name: str, instead: dict[str, str]) -> None:
  # TensorFlow wraps the modules of version 1, to warn of what is deprecated.
  names = vars(getattr(module, "_tfmw_wrapped_module", module))
  names["__getattr__"] = _getattr_of(module.__name__, name, instead, names.get("__getattr__"))


def _getattr_of(module: str, name: str, instead: dict[str, str], before: Any) -> Callable[[str], Any]:
  """Returns what Python calls for an attribute that a module has not. `before` did that so far, or is None."""

  def find(attribute: str) -> Any:
    if attribute in instead:
      raise AttributeError(f"{name}.{attribute}: {instead[attribute]}. See docs/migrating_deeprec.md.")
    if before is not None:
      return before(attribute)
    raise AttributeError(f"module '{module}' has no attribute '{attribute}'")

  return find
