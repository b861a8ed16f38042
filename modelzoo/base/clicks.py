# SPDX-License-Identifier: Apache-2.0
"""What the models share that embed each category of Criteo's format: the sizes of the table, and its rows."""

from __future__ import annotations

import dataclasses

from modelzoo.base import criteo
from modelzoo.base.model import Features
from modelzoo.base.optimizers import Optimization
from modelzoo.base.settings import setting


@dataclasses.dataclass(frozen=True)
class Hyperparameters(Optimization):
  """The sizes of the embedding tables."""

  buckets: int = setting(10_000, "rows of the embedding table of each category", least=1)
  embedding_size: int = setting(16, "length of an embedding", least=1)

  @property
  def rows(self) -> int:
    """The rows of the table of all categories."""
    return len(criteo.CATEGORIES) * self.buckets


def prepare(features: Features, hyperparameters: Hyperparameters) -> Features:
  """Turns the columns into `numbers`, float32 of shape [batch, 13], and `ids`, rows of the table, int64 [batch, 26]."""
  return {
      "numbers": criteo.dense_numbers(features),
      "ids": criteo.category_ids(features, hyperparameters.buckets),
  }
