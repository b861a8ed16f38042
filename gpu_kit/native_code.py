# SPDX-License-Identifier: Apache-2.0
"""Compiles the GPU code of a wheel for chips, so that the driver need not do it at the first step on each new machine.

The official wheel has machine code (SASS) for old chips, and PTX that drivers compile for new ones. This program
compiles the PTX with CUDA's `ptxas`, and puts the result into the place of each container: the code of the chips, and
the PTX behind it where there is room, so that later chips can still run the wheel. Code of other chips is dropped. No
container moves, so no other byte of a library changes.

A container without PTX, and an input of CUDA's linker, which nothing loads, stays as it is.

It writes a zip file with the libraries that have changed, for wheel/assemble.py.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import mmap
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from collections.abc import Sequence

import chips
import elf
import fatbin
import lz4.block

# Kind, version, size of the header, size of the content, packed size, offset of compiler options, version of the code's
# format (minor, major), chip, offset and size of a name, flags, nothing, plain size.
_HEADER = struct.Struct("<HHIQIIHHIIIQQQ")
_SASS, _VERSION, _FORMAT = 2, 0x101, (7, 1)
_PLAIN_FLAGS, _PACKED_FLAGS = 0x11, 0x2011
# The sizes of a packed entry, whose header is longer if it is PTX.
_SIZES = struct.Struct("<I36xQ")
_SIZES_OFFSET, _FLAGS_OFFSET = 16, 40

_DATE = (1980, 1, 1, 0, 0, 0)
_KERNEL = re.compile(rb"^\s*(?:\.visible\s+|\.weak\s+)*\.entry\s+([\w$]+)", re.MULTILINE)


def content(data: mmap.mmap | bytes, entry: fatbin.Entry) -> bytes:
  """Returns the code of an entry, unpacked: PTX, or an ELF file.

  Raises:
    ValueError: If it is packed in an unknown way, or damaged.
  """
  flags, = struct.unpack_from("<Q", data, entry.header + _FLAGS_OFFSET)
  if flags == _PLAIN_FLAGS:
    return data[entry.offset:entry.offset + entry.size]
  packed, plain = _SIZES.unpack_from(data, entry.header + _SIZES_OFFSET)
  if flags != _PACKED_FLAGS or packed > entry.size:
    raise ValueError(f"the GPU code at {entry.offset:#x} is packed in a way that this program does not know")
  try:
    return lz4.block.decompress(data[entry.offset:entry.offset + packed], uncompressed_size=plain)
  except lz4.block.LZ4BlockError as error:
    raise ValueError(f"the GPU code at {entry.offset:#x} is damaged: {error}") from error


def sass_entry(chip: chips.Chip, code: bytes) -> bytes:
  """Returns an entry of a container, header and content, with machine code for a chip."""
  packed = lz4.block.compress(code, mode="high_compression", compression=12, store_size=False)
  is_packed = len(packed) < len(code)
  stored = packed if is_packed else code
  padding = bytes(-len(stored) % 8)
  sizes = (len(packed), _PACKED_FLAGS, len(code)) if is_packed else (0, _PLAIN_FLAGS, 0)
  header = _HEADER.pack(_SASS, _VERSION, _HEADER.size, len(stored) + len(padding), sizes[0], 0, *_FORMAT,
                        chip.major * 10 + chip.minor, 0, 0, sizes[1], 0, sizes[2])
  return header + stored + padding


def kernels_of_ptx(ptx: bytes) -> set[str]:
  """Returns the names of the kernels that PTX defines."""
  return {name.decode() for name in _KERNEL.findall(ptx)}


def kernels_of_sass(code: bytes) -> set[str]:
  """Returns the names of the kernels in machine code, which is an ELF file.

  Raises:
    ValueError: If it is not one.
  """
  sections = {section.name for section in elf.Elf(code).sections}
  names = {name.removeprefix(".text.") for name in sections if name.startswith(".text.")}
  # Unlike other functions, a kernel has a section for its parameters, too.
  return {name for name in names if f".nv.constant0.{name}" in sections}


def missing(container: fatbin.Container, target: Iterable[chips.Chip]) -> list[chips.Chip]:
  """Returns the chips for which a container has PTX, but no machine code."""
  best = {chip: chips.best((entry.code for entry in container.entries), chip) for chip in target}
  return [chip for chip, code in best.items() if code is not None and code.ptx]


def _newest_ptx(container: fatbin.Container, chip: chips.Chip) -> fatbin.Entry:
  best = chips.best((entry.code for entry in container.entries), chip)
  return next(entry for entry in container.entries if entry.code == best)


class Compiler:
  """Compiles PTX, each one once, with several processes at a time.

  Args:
    ptxas: The program.
    workers: The number of processes.
  """

  def __init__(self, ptxas: pathlib.Path, workers: int | None = None):
    self._ptxas = ptxas
    self._pool = concurrent.futures.ThreadPoolExecutor(workers or len(os.sched_getaffinity(0)))
    self._results: dict[tuple[bytes, chips.Chip], concurrent.futures.Future[bytes]] = {}

  def __enter__(self) -> Compiler:
    return self

  def __exit__(self, *exception_info) -> None:
    self._pool.shutdown(cancel_futures=True)

  def start(self, ptx: bytes, chip: chips.Chip) -> concurrent.futures.Future[bytes]:
    """Returns the machine code that PTX will have been compiled to. It has the same kernels.

    The future raises ValueError if `ptxas` cannot compile it for the chip.
    """
    key = (ptx, chip)
    if key not in self._results:
      self._results[key] = self._pool.submit(self._compile, ptx, chip)
    return self._results[key]

  def _compile(self, ptx: bytes, chip: chips.Chip) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
      source, out = pathlib.Path(folder, "code.ptx"), pathlib.Path(folder, "code.cubin")
      source.write_bytes(ptx.rstrip(b"\0"))
      command = [self._ptxas, f"--gpu-name={chip}", "--opt-level=3", source, "--output-file", out]
      done = subprocess.run(command, capture_output=True, text=True)
      if done.returncode:
        raise ValueError(f"ptxas cannot compile for {chip}: {done.stderr.strip()}")
      code = out.read_bytes()
    if (wanted := kernels_of_ptx(ptx)) != (found := kernels_of_sass(code)):
      raise ValueError(f"ptxas compiled other kernels for {chip} than the PTX has: {sorted(wanted ^ found)[:3]}")
    return code


def add_to(path: pathlib.Path, target: Sequence[chips.Chip], compiler: Compiler) -> collections.Counter[str]:
  """Puts machine code for chips into a library. Changes the file.

  Args:
    path: The library.
    target: The chips.
    compiler: What compiles.

  Returns:
    How many containers there are of each kind, in words; empty for a library without GPU code.

  Raises:
    ValueError: If the library's layout is unknown, `ptxas` cannot compile its PTX, or the code of the chips does not
      fit into a container's place.
  """
  counts: collections.Counter[str] = collections.Counter()
  with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
    compiled: list[tuple[fatbin.Container, dict[chips.Chip, concurrent.futures.Future[bytes]]]] = []
    for container in fatbin.containers(data):
      if container.linkable:
        counts["inputs of the linker, unchanged"] += 1
      elif not any(entry.code.ptx for entry in container.entries):
        counts["without PTX, unchanged"] += 1
      else:
        compiled.append((container, {
            chip: compiler.start(content(data, _newest_ptx(container, chip)), chip)
            for chip in missing(container, target)
        }))
    for container, codes in compiled:
      counts[_rewrite(data, container, target, {chip: code.result() for chip, code in codes.items()})] += 1
  return counts


def _rewrite(
    data: mmap.mmap, container: fatbin.Container, target: Sequence[chips.Chip], compiled: dict[chips.Chip, bytes]
) -> str:
  kept = fatbin.needed((entry.code for entry in container.entries), target)
  stored = lambda entry: data[entry.header:entry.offset + entry.size]
  native = [stored(entry) for entry in container.entries if entry.code in kept and not entry.code.ptx]
  native += [sass_entry(chip, code) for chip, code in compiled.items()]
  size = sum(map(len, native))
  if size > container.size:
    raise ValueError(
        f"the code for {', '.join(map(str, target))} needs {size} bytes at {container.offset:#x}, where"
        f" {container.size} are: name fewer chips")
  parts = native
  # The newest PTX first, if there are several.
  for entry in sorted(container.entries, key=lambda entry: entry.code, reverse=True):
    if entry.code.ptx and sum(map(len, parts)) + len(stored(entry)) <= container.size:
      parts = [*parts, stored(entry)]
  written = b"".join(parts)
  struct.pack_into("<Q", data, container.offset - 8, len(written))
  data[container.offset:container.offset + container.size] = written.ljust(container.size, b"\0")
  return "with machine code and PTX" if len(parts) > len(native) else "with machine code alone"


def compile_wheel(
    wheel: pathlib.Path, target: Sequence[chips.Chip], ptxas: pathlib.Path, out: pathlib.Path
) -> dict[str, collections.Counter[str]]:
  """Compiles the GPU code in a wheel.

  Args:
    wheel: The wheel.
    target: The chips.
    ptxas: CUDA's assembler.
    out: The zip file to write, with the changed libraries under their names in the wheel.

  Returns:
    For each changed library what `add_to` returns.

  Raises:
    ValueError: As `add_to` does; or if the wheel has no GPU code.
  """
  changed = {}
  with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as result, Compiler(
      ptxas) as compiler, tempfile.TemporaryDirectory() as folder:
    for member in source.infolist():
      if ".so" not in member.filename:
        continue
      path = pathlib.Path(source.extract(member, folder))
      if elf.is_elf(path) and (counts := add_to(path, target, compiler)):
        changed[member.filename] = counts
        info = zipfile.ZipInfo(member.filename, _DATE)
        info.external_attr, info.compress_type = member.external_attr, zipfile.ZIP_DEFLATED
        info.file_size = member.file_size
        with path.open("rb") as library, result.open(info, "w") as target_file:
          while block := library.read(1 << 24):
            target_file.write(block)
      path.unlink()
  if not changed:
    raise ValueError(f"{wheel.name} has no GPU code: build with --config=cuda")
  return changed


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--wheel", type=pathlib.Path, required=True, help="the official wheel")
  parser.add_argument("--ptxas", type=pathlib.Path, required=True, help="CUDA's assembler")
  parser.add_argument("--chips", required=True, help="as sm_80,sm_90")
  parser.add_argument("--out", type=pathlib.Path, required=True, help="the zip file to write")
  arguments = parser.parse_args()
  try:
    target = [chips.parse_chip(text) for text in arguments.chips.split(",")]
    for name, counts in compile_wheel(arguments.wheel, target, arguments.ptxas, arguments.out).items():
      print(f"{name}: " + ", ".join(f"{number} containers {kind}" for kind, number in counts.items()))
  except ValueError as error:
    sys.exit(f"error: {error}")


if __name__ == "__main__":
  main()
