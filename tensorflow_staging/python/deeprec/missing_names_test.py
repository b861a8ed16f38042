# SPDX-License-Identifier: Apache-2.0
"""Names of DeepRec that the wheel has not say what to use instead."""

import pytest
import tensorflow as tf


@pytest.mark.parametrize("root", [tf, tf.compat.v1], ids=["tf", "tf.compat.v1"])
@pytest.mark.parametrize("module, name, expected", [
    ("", "get_embedding_variable", "use a variable of fixed size"),
    ("", "EmbeddingVariableOption", r"tf.staging.use_deeprec_names\(\) adds it"),
    ("train", "AdamAsyncOptimizer", "use tf.compat.v1.train.AdamOptimizer"),
    ("train", "AdagradDecayOptimizer", "or AdagradOptimizer"),
    ("feature_column", "categorical_column_with_embedding", "categorical_column_with_hash_bucket"),
    ("feature_column", "group_embedding_column_scope", "use parameter servers with a partitioner"),
    ("nn", "fused_safe_embedding_lookup_sparse", "use tf.compat.v1.nn.safe_embedding_lookup_sparse"),
])
def test_a_name_of_deeprec(root, module, name, expected):
  module = getattr(root, module) if module else root
  with pytest.raises(AttributeError, match=rf"^tf\..*\b{name}: .*{expected}.* See docs/migrating_deeprec.md.$"):
    getattr(module, name)
  assert not hasattr(module, name)
  with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
    module.nothing  # noqa: B018


def test_what_is_advised_is_there():
  assert tf.feature_column.categorical_column_with_hash_bucket and tf.strings.to_hash_bucket_fast
  assert tf.compat.v1.train.AdamOptimizer and tf.compat.v1.train.AdagradOptimizer
  assert tf.compat.v1.nn.safe_embedding_lookup_sparse
