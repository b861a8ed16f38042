# SPDX-License-Identifier: Apache-2.0
"""Tests of what build_plugin.sh refuses before it begins, of what it installs, and of the programs that Bazel calls."""

import importlib.util
import pathlib
import re
import subprocess

import pytest

_BUILD_PLUGIN = pathlib.Path(__file__).with_name("build_plugin.sh")
_PLUGIN = _BUILD_PLUGIN.parent.parent / "plugin"
_REQUIREMENTS = sorted((_PLUGIN / "requirements").glob("*/*.txt"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tensorflow=2.14"], r"--tensorflow=2\.14: the plugin can be built for TensorFlow 2\.16 .*2\.21\."),
        (["--tensorflow="], r"--tensorflow=: the plugin can be built for .*"),
        (["--tensorflow=2.16", "--python=3.8"],
         r"--python=3\.8: for TensorFlow 2\.16, the plugin can be built for Python .*3\.11.*\."),
        (["--fast"], "'--fast' is no option. Usage: .*"),
    ],
)
def test_what_cannot_be_built_is_refused(arguments, message):
  done = subprocess.run([_BUILD_PLUGIN, *arguments], capture_output=True, text=True, timeout=30)
  assert done.returncode == 1
  assert re.fullmatch(f"error: {message}\n", done.stderr)
  assert done.stdout == ""


@pytest.mark.parametrize("path", _REQUIREMENTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_requirements_are_those_of_their_folder(path):
  text = path.read_text()
  for package in ("tensorflow", "tf-keras"):
    assert re.search(rf"^{package}=={re.escape(path.parent.name)}\.\d+ --hash=sha256:\w{{64}}$", text, re.MULTILINE)
  assert all(" --hash=sha256:" in line for line in text.splitlines() if not line.startswith("#"))


def test_each_message_gets_a_class_and_what_is_unknown_is_named():
  spec = importlib.util.spec_from_file_location("message_classes", _PLUGIN / "message_classes.py")
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  for path in (_PLUGIN.parent / "tensorflow_staging/core/protobuf").glob("*.proto"):
    text = path.read_text()
    header = module.header_of(text)
    for kind, name in re.findall(r"^ *(message|enum) (\w+) {", text, re.MULTILINE):
      assert f"{'class' if kind == 'message' else 'enum'} {name} " in header
  with pytest.raises(ValueError, match="Message M has 'map<int32, string> f = 1', which is unknown here."):
    module.header_of("message M { map<int32, string> f = 1; }")


def _check_symbols(folder: pathlib.Path, code: str) -> subprocess.CompletedProcess:
  """Checks a library that has this code."""
  command = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", folder / "libplugin.so"]
  subprocess.run(command, input=code, text=True, check=True)
  return subprocess.run([_PLUGIN / "check_symbols.sh", folder / "libplugin.so", folder, folder / "checked.so"],
                        capture_output=True, text=True, check=False)


def test_a_library_that_needs_what_nothing_exports_is_refused(tmp_path):
  done = _check_symbols(tmp_path, "int unknown(); int f() { return unknown(); }")
  assert done.stderr == "TensorFlow does not export what libplugin.so needs:\n_Z7unknownv\n"
  assert done.returncode == 1
  assert not (tmp_path / "checked.so").exists()


def test_a_library_may_need_what_python_exports(tmp_path):
  done = _check_symbols(tmp_path, 'extern "C" int Py_One(), _Py_Two(); int f() { return Py_One() + _Py_Two(); }')
  assert (done.returncode, done.stderr) == (0, "")
  assert (tmp_path / "checked.so").read_bytes() == (tmp_path / "libplugin.so").read_bytes()


def test_bazel_looks_for_packages_in_no_environment():
  """A wheel may have files named BUILD, which Bazel would take for packages of ours."""
  scripts = _BUILD_PLUGIN.parent.glob("*.sh")
  environments = {name for script in scripts for name in re.findall(r"\$root/(\.venv[\w-]*)", script.read_text())}
  assert environments >= {".venv", ".venv-plugin", ".venv-programs"}
  assert environments <= set((_PLUGIN.parent / ".bazelignore").read_text().split())
