# SPDX-License-Identifier: Apache-2.0
"""The area under the ROC curve."""

from __future__ import annotations

import numpy as np


def auc(labels: np.ndarray, predictions: np.ndarray) -> float:
  """Returns the probability that a click has a higher prediction than a row without a click; ties count half.

  Args:
    labels: 0 or 1 for each row; shape [rows].
    predictions: Any score for each row; shape [rows].

  Returns:
    The exact area under the curve; NaN if all labels are equal or a prediction is NaN.
  """
  clicks = np.asarray(labels) > 0.5
  positive, negative = np.count_nonzero(clicks), np.count_nonzero(~clicks)
  if not positive or not negative or np.isnan(predictions).any():
    return float("nan")
  _, inverse, counts = np.unique(predictions, return_inverse=True, return_counts=True)
  # Rows with equal predictions share the mean of their ranks.
  ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
  return float((ranks[clicks].sum() - positive * (positive + 1) / 2) / (positive * negative))
