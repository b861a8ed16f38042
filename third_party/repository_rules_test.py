# SPDX-License-Identifier: Apache-2.0
"""Runs the repository rules as Python, with commands that fail one at a time.

The rules use only syntax that Starlark and Python share. A fake repository context stands for Bazel's: it runs nothing,
and records the commands.
"""

import pathlib
import types
from unittest import mock

import pytest

_ROOT = pathlib.Path(__file__).parent.parent


class _BuildStopped(Exception):
  """The rule called fail()."""


def _load(label: str, printed: list[str]) -> dict:
  """The names that a .bzl file defines, each repository rule being its implementation function."""
  package, file = label.removeprefix("//").split(":")
  path = _ROOT / package / file

  def fail(message):
    raise _BuildStopped(message)

  def load(other, *names):
    loaded = _load(other, printed)
    defined.update({name: loaded[name] for name in names})

  defined = {
      "Label": str,
      "attr": mock.MagicMock(),
      "fail": fail,
      "load": load,
      "print": printed.append,
      "repository_rule": lambda implementation, **_: implementation,
      "struct": types.SimpleNamespace,
  }
  exec(compile(path.read_text(), path, "exec"), defined)
  return defined


_VERSIONS = _load("//third_party:versions.bzl", [])
_PYTHONS = _VERSIONS["PYTHONS"]
_SOURCE = _VERSIONS["TENSORFLOW_SOURCE"]
_PINS = {_SOURCE.debian_file: _SOURCE.debian_sha256, _SOURCE.upstream_file: _SOURCE.upstream_sha256}
for _package in (
    _VERSIONS["PROTOC"], _VERSIONS["PYBIND11"], _VERSIONS["PTXAS"], *(pins.lz4 for pins in _PYTHONS.values()),
    *(wheel for pins in _PYTHONS.values() for wheel in pins.wheels.values())
):
  _PINS[_package.file] = _package.sha256


class _Context:
  """Stands for Bazel's repository context. Every file exists, and every command succeeds except `failing`."""

  def __init__(
      self, failing: int | None = None, folder: str | None = None, python: str = "3.11.7", named: bool = False,
      flavor: str = "cpu"):
    self.os = types.SimpleNamespace(environ={"TF_STAGING_PLUGIN_PYTHON": "/opt/python"})
    if folder is not None:
      self.os.environ["TF_STAGING_DISTDIR"] = folder
    if named:
      self.os.environ["PYTHON_BIN_PATH"] = "/opt/python"
    self.attr = types.SimpleNamespace(flavor=flavor)
    self.python = python
    self.commands = []
    self.environments = []
    self.files = {}
    self.deleted = []
    self.failing = failing

  def execute(self, arguments, timeout=600, environment=None, quiet=True):
    fails = len(self.commands) == self.failing
    self.commands.append([str(argument) for argument in arguments])
    self.environments.append(environment or {})
    # What a command that fails has printed so far looks right.
    return types.SimpleNamespace(return_code=int(fails), stdout=self._output(), stderr="disk full" if fails else "")

  def _output(self) -> str:
    match self.commands[-1]:
      case ["sha256sum", path]:
        return f"{_PINS[pathlib.Path(path).name]}  {path}\n"
      case [_, "-c", code] if "platlib" in code:
        return "/opt/packages\n/usr/include/python\n"
      case [_, "-c", code]:
        return f"{self.python}\n/usr/bin/python\n" if "sys.version" in code else "/usr/include/python\n"
      case [_, "indextargets", *_]:
        return "mirror|Debian\n"
      case _:
        return ""

  def path(self, path):
    return _Path(path)

  def which(self, program):
    return _Path(f"/usr/bin/{program}")

  def read(self, path):
    return "one.patch\n" if str(path).endswith("series") else "+++ b/one.cc\n"

  def delete(self, path):
    self.deleted.append(path)

  def download(self, **_):
    return types.SimpleNamespace(success=True)

  def file(self, path, content="", **_):
    self.files[path] = content

  def symlink(self, *_):
    pass


class _Path(str):
  exists = True

  @property
  def dirname(self):
    return _Path(pathlib.Path(self).parent)


_RULES = [
    ("//third_party/cuda:cuda.bzl", "native_code_tools"),
    ("//third_party/protoc:protoc.bzl", "protoc"),
    ("//third_party/pybind11:pybind11.bzl", "pybind11"),
    ("//third_party/python:python.bzl", "python"),
    ("//third_party/tensorflow:installed.bzl", "tensorflow_installed"),
    ("//third_party/tensorflow:source.bzl", "tensorflow_patched"),
    ("//third_party/tensorflow:source.bzl", "tensorflow_source"),
    ("//third_party/tensorflow:wheel.bzl", "tensorflow_wheel"),
]


def _run(label: str, rule: str, **context) -> tuple[_Context, list[str]]:
  printed = []
  rctx = _Context(**context)
  _load(label, printed)[rule](rctx)
  return rctx, printed


@pytest.mark.parametrize(("label", "rule"), _RULES, ids=[rule for _, rule in _RULES])
def test_a_command_that_fails_stops_the_rule(label, rule):
  commands = _run(label, rule)[0].commands
  assert commands
  for index, command in enumerate(commands):
    if "apt-get" in command[0]:
      continue  # The rule goes on with upstream's archive.
    with pytest.raises(_BuildStopped, match="disk full"):
      _run(label, rule, failing=index)


@pytest.mark.parametrize("rule", ["protoc", "pybind11"])
def test_the_message_says_what_failed_and_how(rule):
  label = f"//third_party/{rule}:{rule}.bzl"
  commands = _run(label, rule, folder="/archives")[0].commands
  with pytest.raises(_BuildStopped) as stopped:
    _run(label, rule, folder="/archives", failing=commands.index(["unzip", "-q", f"{rule}.whl"]))
  assert str(stopped.value) == f"Could not unpack {rule}.whl.\nCommand: unzip -q {rule}.whl\nExit code: 1\ndisk full"


@pytest.mark.parametrize("failing", range(3))
def test_where_apt_fails_upstream_has_the_source(failing):
  rctx, printed = _run("//third_party/tensorflow:source.bzl", "tensorflow_source", failing=failing)
  assert "apt-get" in rctx.commands[failing][0]
  assert [line for line in printed if "disk full" in line]
  assert [command for command in rctx.commands if command[0] == "tar"][0][-1] == f"--file={_SOURCE.upstream_file}"


def _pip_commands(rctx: _Context) -> list[tuple[list[str], dict]]:
  """pip's commands with their environments; each of them checks hashes."""
  commands = [pair for pair in zip(rctx.commands, rctx.environments, strict=True) if "pip" in pair[0]]
  for command, _ in commands:
    assert "--require-hashes" in command
  return commands


@pytest.mark.parametrize("folder", [None, ""])
def test_without_a_local_folder_pip_uses_its_index(folder):
  rctx, _ = _run("//third_party/python:python.bzl", "python", folder=folder)
  [(command, environment)] = _pip_commands(rctx)
  assert not {"--no-index", "--isolated"} & set(command)
  assert not any(argument.startswith("--find-links") for argument in command)
  assert environment == {}


def test_a_complete_local_folder_is_all_that_pip_uses():
  rctx, printed = _run("//third_party/python:python.bzl", "python", folder="/archives")
  [(command, environment)] = _pip_commands(rctx)
  assert {"--no-index", "--isolated", "--find-links=/archives"} <= set(command)
  assert environment == {"PIP_CONFIG_FILE": "/dev/null"}
  assert printed == []


def test_an_incomplete_local_folder_is_reported_before_pip_uses_its_index():
  complete, _ = _run("//third_party/python:python.bzl", "python", folder="/archives")
  first = next(index for index, command in enumerate(complete.commands) if "pip" in command)
  rctx, printed = _run("//third_party/python:python.bzl", "python", folder="/archives", failing=first)
  (offline, _), (online, environment) = _pip_commands(rctx)
  assert "--no-index" in offline
  assert not {"--no-index", "--isolated"} & set(online)
  assert "--find-links=/archives" in online
  assert environment == {}
  assert rctx.deleted == ["site-packages"]
  assert printed == [
      "pip could not install all packages from /archives alone; it now tries with its index:\ndisk full"
  ]


def test_a_local_wheel_needs_no_pip():
  rctx, printed = _run("//third_party/pybind11:pybind11.bzl", "pybind11", folder="/archives")
  assert _pip_commands(rctx) == []
  assert printed == []


def test_a_local_wheel_that_is_missing_is_reported_before_pip_uses_its_index():
  with mock.patch.object(_Path, "exists", False):
    rctx, printed = _run("//third_party/pybind11:pybind11.bzl", "pybind11", folder="/archives")
  assert len(_pip_commands(rctx)) == 1
  assert printed == ["/archives has no pybind11-2.10.4-py3-none-any.whl; pip downloads pybind11==2.10.4."]


def test_the_tests_compile_gpu_code_with_the_tools_of_the_build():
  pinned = (_ROOT / "ci/requirements.txt").read_text().splitlines()
  for package in (_VERSIONS["PTXAS"], _PYTHONS[_VERSIONS["DEFAULT_PYTHON"]].lz4):
    assert f"{package.requirement} --hash=sha256:{package.sha256}" in pinned


@pytest.mark.parametrize("flavor", ["cpu", "cuda"])
@pytest.mark.parametrize("version", _PYTHONS)
def test_each_python_has_its_official_wheel_and_requirements(version, flavor):
  named = {"python": f"{version}.1", "named": True}
  tag = "cp" + version.replace(".", "")
  rctx, _ = _run("//third_party/tensorflow:wheel.bzl", "tensorflow_wheel", flavor=flavor, folder="/archives", **named)
  [path] = [command[-1] for command in rctx.commands if command[0] == "sha256sum"]
  assert path.startswith(f"/archives/tensorflow{'_cpu' if flavor == 'cpu' else ''}-")
  assert f"-{tag}-{tag}-" in path

  rctx, _ = _run("//third_party/python:python.bzl", "python", **named)
  assert rctx.files["version.bzl"] == f'PYTHON_VERSION = "{version}"\n'
  [(command, _)] = _pip_commands(rctx)
  [requirements] = [argument for argument in command if argument.startswith("--requirement=")]
  file = requirements.rpartition(":")[2]
  assert file == ("requirements.txt" if version == _VERSIONS["DEFAULT_PYTHON"] else f"requirements_{version}.txt")
  for folder in ("third_party/python", "ci"):
    assert (_ROOT / folder / file).is_file()


def test_a_python_without_an_official_wheel_is_refused():
  with pytest.raises(_BuildStopped) as stopped:
    _run("//third_party/tensorflow:wheel.bzl", "tensorflow_wheel", python="3.12.1", named=True)
  assert str(stopped.value) == (
      "There is no official wheel of TensorFlow 2.14.1 for /opt/python, which is Python 3.12.1. Set PYTHON_BIN_PATH to"
      " a CPython of one of these versions: 3.9, 3.10, 3.11.")


def test_another_python_than_the_default_must_be_named():
  with pytest.raises(_BuildStopped, match="for Python 3.11 by default, but /usr/bin/python3.11 is 3.10.2. Set"):
    _run("//third_party/python:python.bzl", "python", python="3.10.2")


def test_a_python_without_headers_is_refused():
  with mock.patch.object(_Path, "exists", False), pytest.raises(_BuildStopped) as stopped:
    _run("//third_party/python:python.bzl", "python", python="3.9.2", named=True)
  assert str(stopped.value) == (
      "/usr/bin/python has no headers in /usr/include/python. Install them (Debian: python3.9-dev).")
