# SPDX-License-Identifier: Apache-2.0
"""Benchmarks work: they measure too little to mean anything, and print their tables."""

import os
import pathlib
import subprocess
import sys
from xml.etree import ElementTree

import pytest

_FOLDER = pathlib.Path(__file__).parent
_PROGRAMS = {
    "ahead": ["ahead.py", "--quick"],
    "exactly_once": ["exactly_once.py", "--quick"],
    "stats_hook": ["stats_hook.py", "--quick"],
    "gpu_ahead": ["gpu_ahead.py", "--device=cpu"],
    "gpu_models": ["gpu_models.py", "--device=cpu", "--models", "dssm", "--tf_data=best", "--quick"],
}
_WITH_PICTURES = (
    "autotune", "autotune_soon", "default_capacity", "equal_sessions", "first_steps", "models", "models_closely",
    "overlap_ratios", "parameter_servers", "pipelines", "scale", "soak")


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


@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", _WITH_PICTURES)
def test_a_benchmark_prints_its_tables_and_draws_a_picture(program, tmp_path):
  picture = tmp_path / "picture.svg"
  _check(_tables(f"{program}.py", "--quick", f"--picture={picture}"))
  # The background is a rectangle.
  shapes = [element.tag.rpartition("}")[2] for element in ElementTree.parse(picture).iter()]
  assert shapes.count("rect") + shapes.count("polyline") >= 2
