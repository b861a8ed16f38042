# SPDX-License-Identifier: Apache-2.0
"""The stubs have our signatures; type checkers find a wrong argument with them, in the installed wheel."""

import ast
import importlib.resources
import subprocess
import sys

import pytest
import type_stubs

_SOURCE = '''
@tf_export("staged")
@other
def staged(features: Any, capacity: int = 1, *, config: Optional[config_pb2.ConfigProto] = None) -> ops.Tensor:
  """Text."""

@tf_export("staging.stats")
def stats(session: session_lib.Session) -> list["StageStats"]: ...

@tf_export("stream")
@contextlib.contextmanager
def stream(index: int = 0, ordered: bool = True) -> Iterator[None]: ...

@tf_export("staging.Hook")
class Hook(session_run_hook.SessionRunHook):
  def __init__(self, every: Union[int, float], call: Callable[[str], None]): ...
  def begin(self) -> None: ...
  def _private(self): ...

@tf_export("train.mark")
def mark(nodes: Any) -> None: ...

def not_exported(): ...
'''


@pytest.fixture
def stubs(tmp_path):
  path = tmp_path / "module.py"
  path.write_text(_SOURCE)
  return type_stubs.stubs([path], "1")


def test_the_root_has_our_functions_and_any_for_the_rest(stubs):
  root = stubs["tensorflow/__init__.pyi"]
  ast.parse(root)
  assert "def staged(features: Any, capacity: int=..., *, config: Optional[Any]=...) -> Any: ...\n" in root
  # The root's star brings tf.bool.
  assert "def stream(index: int=..., ordered: builtins.bool=...) -> Any: ...\n" in root
  assert "from tensorflow._root_v1 import *" in root
  # Other forms of an import keep the name from those who import the stub.
  assert "from . import staging as staging\n" in root
  assert root.endswith("def __getattr__(name: str) -> Any: ...\n")
  assert "mark" not in root and "not_exported" not in root and "Text" not in root


def test_the_package_has_its_functions_and_classes(stubs):
  package = stubs["tensorflow/staging.pyi"]
  ast.parse(package)
  assert "def stats(session: Any) -> list[Any]: ...\n" in package
  assert "class Hook:\n  def __init__(self, every: Union[int, float], call: Callable[[str], None]) -> None: ...\n" in (
      package)
  assert "  def begin(self) -> None: ...\n" in package
  assert "_private" not in package and "__getattr__(name" not in package


def test_names_of_a_module_of_the_api_are_public_for_checkers_alone():
  module = "import sys as _sys\nfrom . import experimental\nfrom a.b import C as D\nfrom a import module as _m\n"
  appended = type_stubs.public_names(module)
  assert "  __all__ = [\n      'D',\n      'experimental',\n  ]\n" in appended
  names: dict = {}
  exec(appended, names)
  assert "__all__" not in names


def test_a_module_without_names_does_not_change():
  assert type_stubs.public_names('"""Text."""\nimport sys as _sys\n') == ""


def test_a_wheel_without_our_functions_is_refused(tmp_path):
  path = tmp_path / "module.py"
  path.write_text("def staged(): ...")
  with pytest.raises(ValueError, match="exports a name"):
    type_stubs.stubs([path], "1")


_PROGRAM = """\
import tensorflow as tf
from tensorflow import keras
import tensorflow.compat.v1 as v1
from tensorflow.python.ops import prefetch

features = tf.staged(tf.constant(1), capacity=4)
tf.staged(features, capacity="four")
tf.staged(features, capcity=4)
tf.staging.explain(config=tf.ConfigProto())
tf.staging.explain(3, 4, 5)
tf.staging.explian()
tf.train.AdamOptimizer(0.1).minimize(features)
keras.layers.Dense(3), v1.placeholder(v1.int32), prefetch.staged(features)
hook = tf.staging.StatsHook(every_n_secs="often")
"""


def test_mypy_finds_wrong_arguments(tmp_path):
  pytest.importorskip("mypy", reason="The tests of other Pythons do not install mypy.")
  (tmp_path / "program.py").write_text(_PROGRAM)
  done = subprocess.run(
      [sys.executable, "-m", "mypy", "--cache-dir", tmp_path / "cache", "program.py"],
      cwd=tmp_path, capture_output=True, text=True)
  found = {int(line.split(":")[1]): line for line in done.stdout.splitlines() if ": error: " in line}
  assert set(found) == {7, 8, 10, 11, 14}, done.stdout + done.stderr
  assert 'Argument "capacity" to "staged" has incompatible type "str"; expected "int"' in found[7]
  assert "capcity" in found[8]
  assert '"explian"' in found[11]


def test_the_wheel_has_them():
  folder = importlib.resources.files("tensorflow")
  assert (folder / "py.typed").is_file()
  assert "def staged(features: Any" in (folder / "__init__.pyi").read_text()
  assert "def stats(session: " in (folder / "staging.pyi").read_text()
  assert "  __all__ = [\n      'AUTOTUNE',\n" in (folder / "_api/v1/data/__init__.py").read_text()
