# SPDX-License-Identifier: Apache-2.0
"""Benchmarks work: they measure too little to mean anything, and print their tables."""

import os
import pathlib
import subprocess
import sys

import pytest

_FOLDER = pathlib.Path(__file__).parent
_PROGRAMS = {
    "autotune": ["autotune.py", "--quick"],
    "gpu_models": ["gpu_models.py", "--device=cpu", "--models", "dssm", "--tf_data=plain", "--batch_size=64"],
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", _PROGRAMS)
def test_a_benchmark_prints_its_table(program):
  name, *arguments = _PROGRAMS[program]
  environment = os.environ | {"GPU_BENCHMARK_SECONDS": "4", "TF_CPP_MIN_LOG_LEVEL": "2"}
  output = subprocess.run(
      [sys.executable, str(_FOLDER / name), *arguments], env=environment, check=True, timeout=280, text=True,
      stdout=subprocess.PIPE).stdout
  rows = [line for line in output.splitlines() if line.startswith("|")]
  assert len(rows) >= 3
  assert {row.count("|") for row in rows} == {rows[0].count("|")}
