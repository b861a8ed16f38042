# SPDX-License-Identifier: Apache-2.0
"""The examples run to the letter, in a folder with their data."""

import shutil
import sys

from tensorflow_staging.python import staging_testing

_EXAMPLES = staging_testing.ROOT / "examples"


def test_stage_example_prints_five_batches_in_the_order_of_the_file(tmp_path):
  shutil.copytree(_EXAMPLES, tmp_path, dirs_exist_ok=True)
  output = staging_testing.run([sys.executable, "stage.py"], tmp_path)

  colors = [line.split(",")[1] for line in (_EXAMPLES / "1.txt").read_text().splitlines()]
  for batch in range(5):
    first, second = (colors[(2 * batch + i) % len(colors)] for i in range(2))
    assert output.count(f"[b'{first}', b'{second}', b'xxx']") == 2, output
