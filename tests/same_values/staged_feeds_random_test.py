# SPDX-License-Identifier: Apache-2.0
"""Runs of random graphs with `tf.staged`, with random feeds, compute what depends on these, or say why not.

`STAGING_FEED_GRAPHS=1000` compares that many graphs. `STAGING_FEED_SEED=7` begins with another seed.
"""

import collections
import os

import pytest

from tensorflow_staging.python.testing import staged_feed_comparison as comparison

_GRAPHS = int(os.environ.get("STAGING_FEED_GRAPHS", "200"))
_FIRST = int(os.environ.get("STAGING_FEED_SEED", "0"))
_PARTS = 4


@pytest.mark.timeout(60 + _GRAPHS)
@pytest.mark.parametrize("part", range(_PARTS))
def test_random_feeds_and_fetches_agree_with_the_graph_without_stages(part):
  counts: collections.Counter = collections.Counter()
  differences = []
  for seed in range(_FIRST + part, _FIRST + _GRAPHS, _PARTS):
    try:
      counts += comparison.compare(seed)
    except comparison.DifferenceError as difference:
      differences.append(str(difference))
  assert not differences, f"{len(differences)} differ:\n" + "\n".join(differences[:10])
  assert counts["ambiguous"] < 0.05 * counts["graphs"]
  assert counts["fed"] > 0.6 * counts["runs"]
  # If all were refused, the comparison would show nothing.
  assert counts["runs"] * 0.05 < counts["refused"] < counts["runs"] * 0.5, counts
