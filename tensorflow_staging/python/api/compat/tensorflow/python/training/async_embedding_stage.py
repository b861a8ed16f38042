# SPDX-License-Identifier: Apache-2.0
"""DeepRec's import path of what stages embedding lookups."""

from tensorflow_staging.python.smart_stage.async_embedding_mark import async_embedding_mark_node
from tensorflow_staging.python.smart_stage.async_embedding_stage import AsyncEmbeddingStage

__all__ = ["AsyncEmbeddingStage", "async_embedding_mark_node"]
