# SPDX-License-Identifier: Apache-2.0
"""smart_stage.md is true: the tests that it names exist, its example prints and draws what it shows."""

import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

import named_tests
import pytest

_FOLDER = pathlib.Path(__file__).parent
_TEXT = (_FOLDER / "smart_stage.md").read_text()

_SECONDS = 100


@pytest.fixture(scope="module")
def example(tmp_path_factory):
  """What the example prints, and the texts of its picture."""
  folder = tmp_path_factory.mktemp("example")
  code = re.findall(r"```python\n(.*?)```", _TEXT, re.DOTALL)[-1]
  done = subprocess.run(
      [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
  assert done.returncode == 0, done.stderr
  return done.stdout, _texts(folder / "smart_stage.svg")


def _texts(svg: pathlib.Path) -> set[str]:
  return {text.text for text in xml.etree.ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")}


def test_named_tests_exist():
  assert len(named_tests.python_tests(_TEXT)) > 10
  assert named_tests.missing_python_tests(_TEXT) == []


def test_the_example_prints_what_the_page_shows(example):
  shown = re.findall(r"\nprints\n\n```\n(.*?)```", _TEXT, re.DOTALL)
  assert [example[0]] == shown


def test_the_picture_is_that_of_the_example(example):
  assert example[1] == _texts(_FOLDER / "smart_stage.svg")
