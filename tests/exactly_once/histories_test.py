# SPDX-License-Identifier: Apache-2.0
"""Whatever a program does to its iterators, and in whatever order, stages change nothing of what its steps get.

The histories are those of `testing/histories`, each in a session or with `tf.staging.ahead`. STAGING_HISTORIES says how
many there are, 300 by default; with it they are different ones each time.
"""

import os
import pathlib
import random
import re
import subprocess
import sys

import pytest

from tensorflow_staging.python.testing import program_environment
from tensorflow_staging.python.testing.histories import play
from tensorflow_staging.python.testing.histories import random_histories

_HISTORIES = int(os.environ.get("STAGING_HISTORIES", "300"))
_SECONDS_PER_HISTORY = 3
_SECONDS_TO_BEGIN = 60
_MOST_DIFFERENCES = 20
# What the programs have, as `play.py` says it: without stages, the histories would test nothing. The default ones have
# it, and so many random ones.
_HISTORIES_WITH_ALL_KINDS = 1000
_KINDS = {"sessions": ["had tf.staged", "had SmartStage"], "functions": ["ran ahead"]}

# Of three histories, two are those of sessions.
_PARTS = [("sessions", 0), ("sessions", 1), ("functions", 2)]
_HISTORIES_PER_PART = -(-_HISTORIES // len(_PARTS))
_LAST_SEED = 10**9


def _first_seed(part: int) -> int:
  if "STAGING_HISTORIES" not in os.environ:
    return part * random_histories.SEEDS_OF_A_PROGRAM * (_HISTORIES // random_histories.SEEDS_OF_A_PROGRAM)
  return random.randrange(0, _LAST_SEED, random_histories.SEEDS_OF_A_PROGRAM)


@pytest.mark.timeout(_SECONDS_TO_BEGIN + _HISTORIES_PER_PART * _SECONDS_PER_HISTORY)
@pytest.mark.parametrize("player, part", _PARTS)
def test_stages_change_nothing(player, part):
  command = [sys.executable, play.__file__, player]
  environment = program_environment.without_source_tree()
  done = subprocess.run(
      [*command, str(_first_seed(part)), str(_HISTORIES_PER_PART)], capture_output=True,
      text=True, env=environment, check=False)
  differences = re.findall("^seed .*", done.stdout, re.MULTILINE)
  if done.returncode and "histories differ" not in done.stdout:
    begun = re.findall(r"^seed \d+ begins", done.stderr, re.MULTILINE)
    differences.append(f"{begun[-1:]}, and the process ended: {done.stderr[-2000:]}")
  replay = f"{pathlib.Path(command[0]).name} {os.path.relpath(command[1])} {player} SEED"
  assert not differences, "\n".join(
      [f"{len(differences)} histories differ; see one with: {replay}", *differences[:_MOST_DIFFERENCES]])
  if "STAGING_HISTORIES" not in os.environ or _HISTORIES_PER_PART >= _HISTORIES_WITH_ALL_KINDS:
    assert not [kind for kind in _KINDS[player] if kind not in done.stdout], done.stdout
