# SPDX-License-Identifier: Apache-2.0
"""The Dockerfile uses what the repository has: its files, its scripts and its Python."""

import pathlib
import re

_ROOT = pathlib.Path(__file__).parents[1]
_TEXT = re.sub(r"\\\n", " ", (_ROOT / "Dockerfile").read_text())
_STEPS = [line.split(maxsplit=1) for line in _TEXT.splitlines() if line and not line.startswith("#")]


def test_what_it_copies_exists():
  copied = [arguments.split()[:-1] for name, arguments in _STEPS if name == "COPY" and "--from=" not in arguments]
  assert copied
  for path in sum(copied, []):
    assert (_ROOT / path).exists(), path


def test_the_scripts_that_it_runs_exist_and_need_no_file_that_comes_later():
  runs = [arguments for name, arguments in _STEPS if name == "RUN"]
  scripts = {script for run in runs for script in re.findall(r"\bci/\w+\.sh", run)}
  assert scripts == {"ci/install_deps.sh", "ci/build_wheel.sh"}
  # The first one runs before the sources are copied.
  text = (_ROOT / "ci/install_deps.sh").read_text() + (_ROOT / "ci/steps.sh").read_text()
  assert set(re.findall(r"\bthird_party/[\w/.]+", text)) == {"third_party/versions.bzl"}


def test_the_image_has_the_python_of_the_wheel():
  default = re.search(r'^DEFAULT_PYTHON = "(.*)"$', (_ROOT / "third_party/versions.bzl").read_text(), re.MULTILINE)[1]
  images = [arguments.split()[0] for name, arguments in _STEPS if name == "FROM"]
  assert f"python:{default}-slim-bookworm" in images
  # One release of Debian: the wheel needs the glibc of the machine that built it, or a later one.
  assert all("bookworm" in image or image == "scratch" for image in images)


def test_a_stage_that_is_copied_from_comes_before():
  seen: set[str] = set()
  for name, arguments in _STEPS:
    if name == "FROM" and " AS " in arguments:
      seen.add(arguments.rpartition(" AS ")[2])
    for stage in re.findall(r"\bfrom=(\w+)", arguments):
      assert stage in seen


def test_apt_keeps_its_lists_for_the_build():
  # third_party/tensorflow/source.bzl asks apt which of its mirrors is Debian's, and apt knows it from them.
  assert "/var/lib/apt/lists" not in _TEXT
