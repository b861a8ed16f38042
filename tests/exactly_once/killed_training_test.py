# SPDX-License-Identifier: Apache-2.0
"""A training process that is killed at random moments, again and again, loses and repeats no record.

STAGING_KILLS says how often it is killed, 2 times by default.
"""

import os
import random
import sys

import pytest

from tensorflow_staging.python.testing import test_util

_PROGRAM = test_util.ROOT / "tensorflow_staging/python/testing/killed_training.py"
_KILLS = int(os.environ.get("STAGING_KILLS", "2"))
_RECORDS_PER_RUN = 60
_SECONDS_PER_RUN = 60


def _start(folder, records, threads):
  # -I keeps the program's folder off the import path, so that the process imports the installed wheel.
  return test_util.start(
      [sys.executable, "-I", _PROGRAM, folder, records, threads], folder, log=folder / "log", TF_API_VERSION="1")


@pytest.mark.timeout(60 * (_KILLS + 1))
@pytest.mark.parametrize("threads", [1, 4])
def test_each_record_comes_exactly_once(threads, tmp_path):
  chance = random.Random(threads)
  records = (_KILLS + 1) * _RECORDS_PER_RUN
  resumed = []
  for _ in range(_KILLS):
    kill_after = chance.randrange(2, _RECORDS_PER_RUN)
    with _start(tmp_path, records, threads) as process:
      resumed.append(process.stdout.readline())
      for _ in range(kill_after):
        assert process.stdout.readline() == "step\n", (tmp_path / "log").read_text()
      process.kill()
  with _start(tmp_path, records, threads) as process:
    output, _ = process.communicate(timeout=_SECONDS_PER_RUN)
  assert process.returncode == 0, (tmp_path / "log").read_text()
  assert output.splitlines()[-1] == f"done {records} 1 1"
  # The runs began where the one before had saved, not each time anew.
  resumed.append(output.splitlines()[0])
  begun_at = [int(line.split()[1]) for line in resumed]
  assert begun_at == sorted(begun_at)
  assert begun_at[-1] > 0
