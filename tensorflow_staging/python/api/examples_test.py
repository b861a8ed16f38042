# SPDX-License-Identifier: Apache-2.0
"""The examples run unchanged, in a folder with their data."""

import re
import shutil
import subprocess
import sys

import pytest

from tensorflow_staging.python.testing import loopback
from tensorflow_staging.python.testing import program_environment
from tensorflow_staging.python.testing import test_util

_EXAMPLES = test_util.ROOT / "examples"


def test_stage_example_prints_five_batches_in_the_order_of_the_file(tmp_path):
  shutil.copytree(_EXAMPLES, tmp_path, dirs_exist_ok=True)
  output = test_util.run([sys.executable, "stage.py"], tmp_path)

  _assert_five_batches(output, "1.txt")


@pytest.mark.parametrize(
    "program,data", [("smart_stage_auto.py", "test_data.csv"), ("smart_stage_manual.py", "1.txt")])
def test_smart_stage_examples_print_the_same_and_hash_ahead_of_the_step(program, data, tmp_path):
  shutil.copytree(_EXAMPLES, tmp_path, dirs_exist_ok=True)
  done = test_util.completed([sys.executable, program], tmp_path, TF_CPP_MIN_LOG_LEVEL="0")

  _assert_five_batches(done.stdout, data)
  staged = re.findall(r"SmartStage: stage '\w+' runs (\d+) nodes ahead .* (\d+) tensors from", done.stderr)
  assert len(staged) == 1, done.stderr[-8000:]
  nodes, boundary = map(int, staged[0])
  # The region has at least the source (or the taken record), the op that hashes one column and the op that appends to
  # the other. Its boundary has the results of the last two.
  assert nodes >= 3
  assert boundary == 2


def test_parameter_server_example_trains_two_workers_on_lines_of_their_own(tmp_path):
  shutil.copytree(_EXAMPLES, tmp_path, dirs_exist_ok=True)
  ps, *workers = [f"127.0.0.1:{port}" for port in loopback.free_ports(3)]
  command = [sys.executable, "parameter_server.py", f"--ps={ps}", f"--workers={','.join(workers)}"]
  environment = program_environment.without_source_tree()
  # A parameter server never ends by itself; `timeout` ends it even if this test cannot.
  limited = ["timeout", str(2 * test_util.PROGRAM_SECONDS), *command, "--job=ps"]
  server = subprocess.Popen(limited, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
  try:
    colors = [line.split(",")[1] for line in (_EXAMPLES / "test_data.csv").read_text().splitlines()]
    # Runs one worker after the other, because a worker that finds uninitialised variables waits for half a minute.
    for task in range(2):
      output = test_util.run([*command, "--job=worker", f"--task={task}"], tmp_path)
      assert re.findall(r"b'(\w+)'", output) == colors[task::2]
  finally:
    server.terminate()
    server.wait()


def _assert_five_batches(output: str, data: str) -> None:
  """Checks that the program printed five batches of two lines, in the order of the file."""
  colors = [line.split(",")[1] for line in (_EXAMPLES / data).read_text().splitlines()]
  for batch in range(5):
    first, second = (colors[(2 * batch + i) % len(colors)] for i in range(2))
    assert output.count(f"[b'{first}', b'{second}', b'xxx']") == 2, output
