# SPDX-License-Identifier: Apache-2.0
"""Assembles the wheel from the base wheel's unchanged members, our files in place of others, and new metadata."""

from __future__ import annotations

import argparse
import contextlib
import email.parser
import email.policy
import pathlib
import re
import zipfile

import cuda_extra
import identity
import manifest
import platform_tag
import record
import sbom
import zip_copy

_LIBRARY = "tensorflow/libtensorflow_cc.so.2"
_BASE_LIBRARY = "tensorflow/libtensorflow_cc_base.so.2"
_CPU_BASE = "tensorflow-cpu"  # the name of the official wheel without CUDA


def _notice(version: str, base: str, patched: list[str], native: list[str]) -> str:
  """Returns the text of NOTICE, which names the changed files of TensorFlow, as Apache-2.0, section 4b, requires."""
  lines = [
      f"This is tensorflow {version}, a fork of TensorFlow with pipeline staging. It is not a release by the",
      "TensorFlow Authors.",
      "",
      f"It contains the files of {base}, unchanged except for:",
      "",
      f"  {_LIBRARY}: renamed to {_BASE_LIBRARY}; a library of the fork has the old name",
      *(f"  {name}: its code for GPUs compiled for other chips" for name in native),
      "  tensorflow/__init__.py and tensorflow/_api/: regenerated, with the fork's symbols",
      *(f"  {name}: changed" for name in patched),
      "",
      "Everything below tensorflow_staging/ and tensorflow/include/tensorflow_staging/ is new.",
  ]
  return "\n".join(lines) + "\n"


def _metadata(text: str, version: str, base: str, python: str) -> str:
  """Returns the base wheel's METADATA with our identity and extra for CUDA."""
  message = email.parser.Parser(policy=email.policy.compat32).parsestr(text)
  cuda = message["Name"] != _CPU_BASE
  cuda_extra.adapt(message, cuda=cuda)
  identity.adapt(message, version, base, python, cuda)
  return message.as_string()


def _wheel_file(text: str, tag: str) -> str:
  """Returns the base wheel's WHEEL with our generator and tag."""
  lines = [line for line in text.splitlines() if line and not line.startswith(("Tag:", "Generator:"))]
  return "\n".join([*lines, "Generator: tensorflow_staging", f"Tag: {tag}"]) + "\n"


def _new_name(name: str) -> str:
  """Returns the name in our wheel of a file of the official wheel."""
  return _BASE_LIBRARY if name == _LIBRARY else name


def _is_elf(path: pathlib.Path) -> bool:
  with path.open("rb") as file:
    return file.read(4) == b"\x7fELF"


def _generated(folder: pathlib.Path) -> dict[str, pathlib.Path]:
  return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}


def assemble(
    base_wheel: pathlib.Path,
    files: dict[str, pathlib.Path],
    generated: pathlib.Path,
    version: str,
    contained: list[sbom.Component],
    out: pathlib.Path,
    native_code: pathlib.Path | None = None,
) -> pathlib.Path:
  """Writes the wheel.

  Args:
    base_wheel: The official wheel.
    files: The files to add or to replace, by their paths in the wheel.
    generated: A folder with the generated Python, laid out as in the wheel.
    version: The version of our wheel.
    contained: The packages whose code is in the wheel.
    out: The folder for the wheel.
    native_code: A zip file with libraries that replace those of the official wheel.

  Returns:
    The path of the wheel.
  """
  with contextlib.ExitStack() as archives:
    base = archives.enter_context(zipfile.ZipFile(base_wheel))
    native = archives.enter_context(zipfile.ZipFile(native_code)) if native_code else None
    native_members = {member.filename: member for member in native.infolist()} if native else {}
    members = {member.filename: member for member in base.infolist() if not member.is_dir()}
    old_info = next(name for name in members if name.endswith(".dist-info/METADATA")).rsplit("/", 1)[0]
    hashes = record.parse(base.read(f"{old_info}/RECORD").decode())
    read = lambda name: base.read(f"{old_info}/{name}").decode()
    base_name = old_info.removesuffix(".dist-info").replace("_", "-").replace("-2.", " 2.")

    # A patched Python file that is not in the base wheel is for the generator alone, so it is not shipped.
    patched_python = [name for name, path in files.items() if "/tensorflow_patched/" in str(path)]
    files = {
        name: path
        for name, path in files.items()
        if not (name in patched_python and name.endswith(".py") and name not in members)
    }
    ours: dict[str, bytes | pathlib.Path] = {**files, **_generated(generated)}

    libraries = [path for path in files.values() if _is_elf(path)]
    base_glibc = re.search(r"manylinux_(\d+)_(\d+)_", base_wheel.resolve().name)
    python = re.search(r"-cp3(\d+)-cp3\d+-", base_wheel.resolve().name)
    tag = f"cp3{python[1]}-cp3{python[1]}-" + platform_tag.tag_of(libraries, (int(base_glibc[1]), int(base_glibc[2])))

    info = f"{identity.NAME}-{version}.dist-info"
    patched = sorted(name for name in files if name in members and name not in (_LIBRARY, "tensorflow/__init__.py"))
    ours[f"{info}/METADATA"] = _metadata(read("METADATA"), version, base_name, f"3.{python[1]}").encode()
    ours[f"{info}/WHEEL"] = _wheel_file(read("WHEEL"), tag).encode()
    ours[f"{info}/top_level.txt"] = b"tensorflow\ntensorflow_staging\n"
    ours[f"{info}/entry_points.txt"] = read("entry_points.txt").encode()
    ours[f"{info}/LICENSE"] = read("LICENSE").encode()
    ours[f"{info}/{sbom.PATH}"] = sbom.render(identity.NAME, version, contained).encode()
    ours[f"{info}/NOTICE"] = _notice(version, base_name, patched, sorted(map(_new_name, native_members))).encode()

    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{identity.NAME}-{version}-{tag}.whl"
    entries: dict[str, record.Entry] = {}
    with zip_copy.WheelArchive(path) as wheel:
      for name, member in members.items():
        if name.startswith((old_info + "/", "tensorflow/_api/")) or (name in ours and name != _LIBRARY):
          continue
        target = _new_name(name)
        if name in native_members:
          wheel.copy(native, native_members[name], target)
          entries[target] = record.entry_of_member(native, name)
          continue
        wheel.copy(base, member, target)
        entries[target] = hashes[name]
      for name, content in ours.items():
        wheel.add(name, content)
        entries[name] = record.entry_of(content)
      own_record = f"{info}/RECORD"
      wheel.add(own_record, record.render(entries, own_record).encode())
  return path


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--base_wheel", type=pathlib.Path, required=True)
  parser.add_argument("--manifest", type=pathlib.Path, required=True, help="the list of the files to add or to replace")
  parser.add_argument("--generated", type=pathlib.Path, required=True, help="the generated Python")
  parser.add_argument("--version", required=True)
  parser.add_argument("--contains", type=sbom.parse, action="append", default=[], help="a package in the wheel")
  parser.add_argument("--native_code", type=pathlib.Path, help="libraries that replace those of the official wheel")
  parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder to write the wheel to")
  arguments = parser.parse_args()
  assemble(
      arguments.base_wheel,
      manifest.read(arguments.manifest),
      arguments.generated,
      arguments.version,
      arguments.contains,
      arguments.out,
      arguments.native_code,
  )


if __name__ == "__main__":
  main()
