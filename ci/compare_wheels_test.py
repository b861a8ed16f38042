# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess
import sys
import zipfile

import compare_wheels
import pytest
import wheel_contents

_SCRIPT = pathlib.Path(__file__).with_name("compare_wheels.py")


def _wheel(folder: pathlib.Path, version: str, files: dict[str, bytes], requires: str = "numpy") -> pathlib.Path:
  """Writes a wheel of the distribution "tiny"."""
  path = folder / f"tiny-{version}-py3-none-any.whl"
  info = f"tiny-{version}.dist-info"
  metadata = f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\nRequires-Dist: {requires}\n\nA description.\n"
  with zipfile.ZipFile(path, "w") as wheel:
    for name, content in files.items():
      wheel.writestr(name, content)
    wheel.writestr(f"{info}/METADATA", metadata)
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
    wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\n")
    wheel.writestr(f"{info}/RECORD", f"{info}/RECORD,,\n")
  return path


def _library(folder: pathlib.Path, *linker_options: str) -> bytes:
  """Compiles an empty library."""
  path = folder / "library.so"
  command = ["g++", "-shared", "-fPIC", "-xc++", "/dev/null", "-o", path, "-Wl,--no-as-needed", *linker_options]
  subprocess.run(command, check=True)
  return path.read_bytes()


def _run(*arguments: pathlib.Path | str) -> subprocess.CompletedProcess:
  return subprocess.run([sys.executable, _SCRIPT, *arguments], capture_output=True, text=True, timeout=60)


def test_everything_that_differs_is_listed(tmp_path):
  plain = _library(tmp_path)
  files = {"p/same.py": b"1", "p/old.py": b"12", "p/mode.py": b"a", "p/a.so": plain, "p/b.so": plain}
  first = _wheel(tmp_path, "1.0", files)
  linked = _library(tmp_path, "-lresolv", "-Wl,-rpath,$ORIGIN/x:$ORIGIN/y", "-Wl,-soname,lib.so.1")
  files = {"p/same.py": b"1", "p/new/a.h": b"", "p/mode.py": b"b", "p/a.so": linked, "p/b.so": linked}
  second = _wheel(tmp_path, "2.0", files, requires="numpy (<2)")

  result = _run(first, second)
  assert result.returncode == 1, result.stderr
  lines = result.stdout.splitlines()
  assert lines[0].startswith("- tiny-1.0-py3-none-any.whl: 6 files, ")
  assert lines[1].startswith("+ tiny-2.0-py3-none-any.whl: 6 files, ")
  sizes = [f"{len(library):,} B" if len(library) < 10_000 else f"{len(library) / 1e3:,.0f} kB"
           for library in (plain, linked)]
  assert lines[2:] == [
      "",
      "Metadata",
      "  - Requires-Dist: numpy",
      "  + Requires-Dist: numpy (<2)",
      "  - Version: 1.0",
      "  + Version: 2.0",
      "",
      "Files only in -: 1",
      "  p/old.py: 2 B",
      "",
      "Files only in +: 1",
      "  p/new/a.h: 0 B",
      "",
      "Files that differ: 3",
      f"  p/a.so: {sizes[0]} -> {sizes[1]}",
      f"  p/b.so: {sizes[0]} -> {sizes[1]}",
      "  p/mode.py: 1 B -> 1 B",
      "",
      "Native libraries that the loader treats differently",
      "  p/a.so",
      "  p/b.so",
      "    + NEEDED libresolv.so.2",
      "    + RUNPATH $ORIGIN/x",
      "    + RUNPATH $ORIGIN/y",
      "    + SONAME lib.so.1",
  ]


def test_a_library_of_one_wheel_is_listed_with_all_that_it_needs(tmp_path):
  first = _wheel(tmp_path, "1.0", {"lib.so": _library(tmp_path, "-nostdlib", "-lresolv")})
  second = _wheel(tmp_path, "2.0", {})
  with wheel_contents.Wheel(first) as old, wheel_contents.Wheel(second) as new:
    assert compare_wheels.report(old, new)[-2:] == ["  lib.so", "    - NEEDED libresolv.so.2"]


def test_equal_wheels(tmp_path):
  wheel = _wheel(tmp_path, "1.0", {"p/a.py": b"1"})
  result = _run(wheel, wheel)
  assert result.returncode == 0, result.stderr
  assert result.stdout.endswith("\nThe wheels are equal.\n")


def test_changed_descriptions_of_the_same_length_are_listed(tmp_path):
  wheels = []
  for text in ("one", "two"):
    path = tmp_path / f"{text}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
      wheel.writestr("tiny-1.0.dist-info/METADATA", f"Name: tiny\n\n{text}\n")
      wheel.writestr("tiny-1.0.dist-info/WHEEL", "Tag: py3-none-any\n")
    wheels.append(path)
  result = _run(*wheels)
  assert result.returncode == 1
  assert "  - Description: 3 characters, CRC-32 " in result.stdout


@pytest.mark.parametrize(
    ("lines", "groups"),
    [
        (1, {"": 6}),
        (2, {"a/": 5, "b": 1}),
        (3, {"a/x/": 4, "a/y": 1, "b": 1}),
        (6, {"a/x/1": 1, "a/x/2": 1, "a/x/3/4": 1, "a/x/3/5": 1, "a/y": 1, "b": 1}),
    ],
)
def test_folders_are_opened_as_far_as_the_lines_suffice(lines, groups):
  names = ["a/x/1", "a/x/2", "a/x/3/4", "a/x/3/5", "a/y", "b"]
  grouped = compare_wheels.grouped(names, lines)
  assert {key: len(files) for key, files in grouped.items()} == groups


def test_all_lists_each_file(tmp_path):
  first = _wheel(tmp_path, "1.0", {})
  second = _wheel(tmp_path, "2.0", {f"p/{number:03}.h": b"" for number in range(100)})
  assert "  p/: 100 files, 0 B\n" in _run(first, second).stdout
  shown = _run("--all", first, second).stdout
  assert "  p/: " not in shown
  assert shown.count(".h: 0 B\n") == 100


@pytest.mark.parametrize("content", [None, b"no zip", "empty zip"])
def test_a_file_that_is_no_wheel_is_named(tmp_path, content):
  path = tmp_path / "bad.whl"
  if content == "empty zip":
    zipfile.ZipFile(path, "w").close()
  elif content is not None:
    path.write_bytes(content)
  result = _run(_wheel(tmp_path, "1.0", {}), path)
  assert result.returncode == 2
  assert result.stderr.startswith("error: ")
  assert "bad.whl" in result.stderr
  assert "Traceback" not in result.stderr
