# SPDX-License-Identifier: Apache-2.0
"""Benchmarks work: they measure too little to mean anything, and print their tables."""

import os
import pathlib
import subprocess
import sys

import pytest

_FOLDER = pathlib.Path(__file__).parent
_PROGRAMS = {
    name: [f"{name}.py", "--quick"]
    for name in ("ahead", "autotune", "exactly_once", "models", "models_closely", "order", "parameter_servers",
                 "pipelines", "replicas", "scale", "soak")
} | {
    "lines": ["lines.py"],
    "gpu_ahead": ["gpu_ahead.py", "--device=cpu"],
    "gpu_models": ["gpu_models.py", "--device=cpu", "--models", "dssm", "--tf_data=best", "--quick"],
}


def _tables(name: str, *arguments: str) -> list[list[str]]:
  """Runs a benchmark; returns the rows of each table that it prints."""
  environment = os.environ | {"GPU_BENCHMARK_SECONDS": "200", "TF_CPP_MIN_LOG_LEVEL": "2"}
  output = subprocess.run(
      [sys.executable, str(_FOLDER / name), *arguments], env=environment, check=True, timeout=280, text=True,
      stdout=subprocess.PIPE).stdout
  tables: list[list[str]] = [[]]
  for line in output.splitlines():
    if line.startswith("|"):
      tables[-1].append(line)
    elif tables[-1]:
      tables.append([])
  return [rows for rows in tables if rows]


def _check(tables: list[list[str]]) -> None:
  assert tables
  for rows in tables:
    assert len(rows) >= 3
    assert {row.count("|") for row in rows} == {rows[0].count("|")}
    assert "nan" not in " ".join(rows)
    assert "failed" not in " ".join(rows)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", _PROGRAMS)
def test_a_benchmark_prints_its_table(program):
  _check(_tables(*_PROGRAMS[program]))
