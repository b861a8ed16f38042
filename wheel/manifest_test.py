# SPDX-License-Identifier: Apache-2.0
import pathlib

import manifest
import pytest


def test_reads_destinations_and_sources(tmp_path):
  path = tmp_path / "m"
  path.write_text("a/b.py\tx/b.py\nc.so\ty/c.so\n")
  assert manifest.read(path) == {"a/b.py": pathlib.Path("x/b.py"), "c.so": pathlib.Path("y/c.so")}


def test_two_sources_for_one_destination_are_refused(tmp_path):
  path = tmp_path / "m"
  path.write_text("a\tx\na\ty\n")
  with pytest.raises(ValueError, match="a has two sources: x and y"):
    manifest.read(path)
