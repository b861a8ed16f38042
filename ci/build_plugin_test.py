# SPDX-License-Identifier: Apache-2.0
"""Tests of what build_plugin.sh refuses before it begins, of the requirements that it installs, and of its compiler."""

import importlib.util
import os
import pathlib
import re
import subprocess

import pytest

_BUILD_PLUGIN = pathlib.Path(__file__).with_name("build_plugin.sh")
_COMPILE = _BUILD_PLUGIN.parent.parent / "plugin/compile.py"
_REQUIREMENTS = sorted((_BUILD_PLUGIN.parent.parent / "plugin/requirements").glob("*/*.txt"))


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


def _load_compile():
  spec = importlib.util.spec_from_file_location("plugin_compile", _COMPILE)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


@pytest.fixture(name="compiler")
def _compiler(tmp_path, monkeypatch):
  """plugin/compile.py, with sources that have one unit each, and a g++ that notes what it makes."""
  module = _load_compile()
  root = tmp_path / "root"
  paths = [f"tensorflow_staging/core/{name}.cc" for name in "abcde"] + ["tensorflow_staging/python/module.cc"]
  for path in paths:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f'#include "{path.removesuffix(".cc")}.h"\n')
    (root / path).with_suffix(".h").write_text("")
  for name, value in (("_ROOT", root), ("_ENTRIES", tuple(paths))):
    monkeypatch.setattr(module, name, value)
  (tmp_path / "g++").write_text(f"""#!/bin/sh
for word; do
  case $before in -o) echo "$word" >>{tmp_path}/made; made=$word ;; -c) source=$word ;; esac
  before=$word
done
: >"$made"
[ "$source" ] || exit 0
echo "$made: $source $(sed 's/.*"\\(.*\\).cc"/\\1.cc \\1.h/' "$source" | paste -sd ' ')" >"${{made%.o}}.d"
""")
  (tmp_path / "g++").chmod(0o755)
  monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
  return module


def test_a_changed_file_or_header_is_compiled_again_and_nothing_else(compiler, tmp_path):
  def made() -> list[str]:
    (tmp_path / "made").write_text("")
    build = compiler.Build(tmp_path / "tensorflow", tmp_path / "pybind11", tmp_path / "objects", "-O2")
    build.make(tmp_path / "library.so", 1)
    return sorted(pathlib.Path(line).name.split(".")[0] for line in (tmp_path / "made").read_text().splitlines())

  core = tmp_path / "root/tensorflow_staging/core"
  assert made() == ["library", "python", "unit_0", "unit_1", "unit_2", "unit_3", "unit_4"]
  assert made() == []
  (core / "b.h").write_text(" ")
  assert made() == ["library", "unit_1"]
  (core / "d.cc").write_text((core / "d.cc").read_text())
  assert made() == ["library", "unit_3"]
  (core / "e.cc").unlink()
  assert made() == ["library"]


def test_each_source_of_the_plugin_is_in_one_unit():
  module = _load_compile()
  texts = module.units()
  included = re.findall(r'^#include "(.*)"$', "".join(texts.values()), re.MULTILINE)
  assert sorted(included) == module.sources()
  sizes = {name: sum((module._ROOT / path).stat().st_size for path in re.findall('"(.*)"', text))
           for name, text in texts.items() if name != "python"}
  assert max(sizes.values()) < 2 * min(sizes.values())


def test_each_message_gets_a_class_and_what_is_unknown_is_named():
  module = _load_compile().message_classes
  root = pathlib.Path(module.__file__).parent.parent
  for path in (root / "tensorflow_staging/core/protobuf").glob("*.proto"):
    text = path.read_text()
    header = module.header_of(text)
    for kind, name in re.findall(r"^ *(message|enum) (\w+) {", text, re.MULTILINE):
      assert f"{'class' if kind == 'message' else 'enum'} {name} " in header
  with pytest.raises(ValueError, match="Message M has 'map<int32, string> f = 1', which is unknown here."):
    module.header_of("message M { map<int32, string> f = 1; }")


def test_bazel_looks_for_packages_in_no_environment():
  """A wheel may have files named BUILD, which Bazel would take for packages of ours."""
  scripts = _BUILD_PLUGIN.parent.glob("*.sh")
  environments = {name for script in scripts for name in re.findall(r"\$root/(\.venv[\w-]*)", script.read_text())}
  assert environments >= {".venv", ".venv-plugin", ".venv-programs"}
  assert environments <= set((_BUILD_PLUGIN.parent.parent / ".bazelignore").read_text().split())
