# SPDX-License-Identifier: Apache-2.0
"""The AUC is the share of pairs of a click and another row that are in the right order."""

import math

import numpy as np

from modelzoo.base.auc import auc


def test_it_is_the_share_of_pairs_in_order():
  random = np.random.default_rng(1)
  labels, predictions = random.integers(0, 2, 60), random.integers(0, 9, 60)  # Many predictions are equal.
  pairs = predictions[labels == 1][:, None] - predictions[labels == 0][None, :]
  assert math.isclose(auc(labels, predictions), ((pairs > 0) + 0.5 * (pairs == 0)).mean())


def test_it_is_not_defined_for_one_kind_of_row():
  assert math.isnan(auc(np.ones(3), np.arange(3)))
  assert math.isnan(auc(np.array([]), np.array([])))
  assert math.isnan(auc(np.array([0, 1]), np.array([0.5, math.nan])))
