# SPDX-License-Identifier: Apache-2.0
"""The doctor notices libraries that are not loaded, come from another place, or do not win."""

import pathlib

import pytest
import tensorflow as tf

from tensorflow_staging.python.doctor import loaded_libraries

_PACKAGE = pathlib.Path(tf.__file__).parent
_OVERLAY = "libtensorflow_cc_staging.so.2"


def _maps() -> str:
  return pathlib.Path("/proc/self/maps").read_text()


def _problems(findings) -> list[str]:
  assert findings
  return [found.text for found in findings if found.is_problem]


def test_nothing_is_wrong_with_this_process():
  assert _problems(loaded_libraries.check_loaded(_maps(), _PACKAGE)) == []
  assert _problems(loaded_libraries.check_order(_PACKAGE / "libtensorflow_cc.so.2")) == []
  assert _problems(loaded_libraries.check_session()) == []


def test_a_library_that_is_not_loaded():
  maps = "".join(line for line in _maps().splitlines(keepends=True) if _OVERLAY not in line)
  problem, = _problems(loaded_libraries.check_loaded(maps, _PACKAGE))
  assert problem.endswith(f"tensorflow/{_OVERLAY} is not loaded.")


def test_another_copy_of_a_library():
  maps = _maps() + f"7f00-7f01 r-xp 00000000 00:00 1 /elsewhere/{_OVERLAY}\n"
  assert _problems(loaded_libraries.check_loaded(maps, _PACKAGE)) == [
      f"/elsewhere/{_OVERLAY} is loaded from another place."
  ]


def test_libraries_of_another_package_count_as_not_loaded(tmp_path):
  problems = _problems(loaded_libraries.check_loaded(_maps(), tmp_path))
  assert sum("is not loaded" in problem for problem in problems) == 3
  assert sum("from another place" in problem for problem in problems) == 3


def test_the_stock_library_alone_does_not_win():
  problem, = _problems(loaded_libraries.check_order(_PACKAGE / "libtensorflow_cc_base.so.2"))
  assert "classes from libtensorflow_cc_base.so.2; they must come from libtensorflow_cc_staging.so.2" in problem


@pytest.mark.parametrize("name, message", [
    ("none.so", "cannot open shared object file"),
    ("libtensorflow_framework.so.2", "undefined symbol"),
])
def test_a_front_that_is_none(tmp_path, name, message):
  path = _PACKAGE / name if (_PACKAGE / name).exists() else tmp_path / name
  problem, = _problems(loaded_libraries.check_order(path))
  assert message in problem
