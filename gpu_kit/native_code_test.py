# SPDX-License-Identifier: Apache-2.0
"""Machine code for a chip in the place of other code, compiled by the real ptxas and read back."""

import importlib.util
import os
import pathlib
import struct
import zipfile

import chips
import elf
import elf_files
import fatbin
import lz4.block
import native_code
import pytest

_HOPPER, _AMPERE, _TURING = (chips.parse_chip(name) for name in ("sm_90", "sm_80", "sm_75"))
_PTX = b"""
.version 7.8
.target sm_80
.address_size 64

.func helper(.param .u64 pointer) { ret; }
.visible .entry twice(.param .u64 pointer)
{
  .reg .f32 %value;
  .reg .u64 %address;
  ld.param.u64 %address, [pointer];
  cvta.to.global.u64 %address, %address;
  ld.global.f32 %value, [%address];
  add.f32 %value, %value, %value;
  st.global.f32 [%address], %value;
  ret;
}
.weak .entry $other() { ret; }
"""
_KERNELS = {"twice", "$other"}


@pytest.fixture(scope="module")
def ptxas() -> pathlib.Path:
  """The ptxas of ci/requirements.txt."""
  folder, = importlib.util.find_spec("nvidia.cuda_nvcc").submodule_search_locations
  return pathlib.Path(folder, "bin", "ptxas")


@pytest.fixture
def compiler(ptxas):
  with native_code.Compiler(ptxas) as result:
    yield result


def _packed(entry: bytes) -> bytes:
  """Returns an entry packed as those of the official wheel are."""
  size, = struct.unpack_from("<I", entry, 4)
  plain = entry[size:]
  packed = lz4.block.compress(plain, store_size=False)
  stored = packed + bytes(-len(packed) % 8)
  header = bytearray(entry[:size])
  struct.pack_into("<QI", header, 8, len(stored), len(packed))
  struct.pack_into("<Q", header, 40, 0x2011)
  struct.pack_into("<Q", header, 56, len(plain))
  return bytes(header) + stored


def _plain(entry: bytes) -> bytes:
  header = bytearray(entry)
  struct.pack_into("<Q", header, 40, 0x11)
  return bytes(header)


_PTX_ENTRY = _packed(elf_files.entry("compute_80", _PTX + b"\0"))
# As in the official wheel: machine code of old chips, which leaves room, and PTX for later ones.
_OLD_CODE = _plain(elf_files.entry("sm_60", b"P" * 4000)) + _plain(elf_files.entry("sm_75", b"T" * 4000))
_GENERATED = elf_files.container(_OLD_CODE, _PTX_ENTRY)
_COMPILED = elf_files.container(_OLD_CODE, _plain(elf_files.entry("sm_80", b"A" * 4000)), _PTX_ENTRY)
_NO_PTX = elf_files.container(_plain(elf_files.entry("sm_80", b"N" * 80)))


def _added(path: pathlib.Path, data: bytes, compiler: native_code.Compiler, *target: chips.Chip):
  path.write_bytes(data)
  return native_code.add_to(path, target, compiler)


def _codes(data: bytes) -> list[list[str]]:
  return [[str(entry.code) for entry in container.entries] for container in fatbin.containers(data)]


def test_each_container_has_code_for_the_chip_and_keeps_its_ptx(tmp_path, compiler):
  path = tmp_path / "library.so"
  data = elf_files.library(
      {".nv_fatbin": _COMPILED + _NO_PTX + _COMPILED, ".text": b"code", ".rodata": b"odd" + _GENERATED})
  counts = _added(path, data, compiler, _HOPPER)
  assert counts == {"with machine code and PTX": 3, "without PTX, unchanged": 1}
  changed = path.read_bytes()
  assert _codes(changed) == [["sm_90", "compute_80"], ["sm_80"], ["sm_90", "compute_80"], ["sm_90", "compute_80"]]
  for container in fatbin.containers(changed):
    for entry in container.entries:
      code = native_code.content(changed, entry)
      if entry.code.ptx:
        assert code == _PTX + b"\0"
      elif entry.code.chip == _HOPPER:
        assert native_code.kernels_of_sass(code) == _KERNELS
        # The flags of an ELF file of CUDA end with its chip; machine 190 is CUDA's.
        assert struct.unpack_from("<H", code, 18) == (190,)
        assert code[48] == 90
  # Nothing outside of the containers has changed or moved.
  assert len(changed) == len(data)
  assert [section[:3] for section in elf.Elf(changed).sections] == [section[:3] for section in elf.Elf(data).sections]
  for text in (b"code", b"odd", _NO_PTX):
    assert changed.index(text) == data.index(text)


def test_code_that_a_chip_has_is_kept(tmp_path, compiler):
  path = tmp_path / "library.so"
  _added(path, elf_files.library({".nv_fatbin": _COMPILED + _GENERATED}), compiler, _AMPERE, _TURING)
  changed = path.read_bytes()
  assert _codes(changed) == [["sm_75", "sm_80", "compute_80"], ["sm_75", "sm_80", "compute_80"]]
  first, second = fatbin.containers(changed)
  assert native_code.content(changed, first.entries[1]) == b"A" * 4000
  assert native_code.kernels_of_sass(native_code.content(changed, second.entries[1])) == _KERNELS


def test_inputs_of_the_linker_stay(tmp_path, compiler):
  path = tmp_path / "library.so"
  data = elf_files.library({"__nv_relfatbin": _COMPILED})
  assert _added(path, data, compiler, _HOPPER) == {"inputs of the linker, unchanged": 1}
  assert path.read_bytes() == data


def test_ptx_that_does_not_fit_is_dropped(tmp_path, compiler):
  path = tmp_path / "library.so"
  room = len(native_code.sass_entry(_HOPPER, compiler.start(_PTX, _HOPPER).result())) + 8
  old = _plain(elf_files.entry("sm_75", bytes(room - len(_PTX_ENTRY) - 64)))
  data = elf_files.library({".nv_fatbin": elf_files.container(old, _PTX_ENTRY)})
  assert _added(path, data, compiler, _HOPPER) == {"with machine code alone": 1}
  assert _codes(path.read_bytes()) == [["sm_90"]]


def test_code_that_does_not_fit_is_an_error(tmp_path, compiler):
  data = elf_files.library({".nv_fatbin": elf_files.container(_PTX_ENTRY)})
  with pytest.raises(ValueError, match=r"the code for sm_90 needs \d+ bytes at 0x50, where \d+ are: name fewer chips"):
    _added(tmp_path / "library.so", data, compiler, _HOPPER)


def test_code_that_does_not_pack_is_stored_plain():
  noise = os.urandom(1001)
  data = elf_files.library({".nv_fatbin": elf_files.container(native_code.sass_entry(_HOPPER, noise))})
  entry, = next(fatbin.containers(data)).entries
  assert native_code.content(data, entry) == noise + bytes(7)


@pytest.mark.parametrize(
    ("ptx", "chip", "message"),
    [
        (_PTX, chips.Chip(10, 0), "ptxas cannot compile for sm_100: .*sm_100"),
        (b"no PTX", _HOPPER, "ptxas cannot compile for sm_90: "),
        (_PTX + b"// \n.entry two //\n", _HOPPER, "ptxas"),
    ],
)
def test_ptx_that_cannot_be_compiled(compiler, ptx, chip, message):
  with pytest.raises(ValueError, match=message):
    compiler.start(ptx, chip).result()


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (40, 0x8011, "packed in a way that this program does not know"),
        (16, 1 << 20, "packed in a way that this program does not know"),
        (56, 3, "is damaged"),
    ],
)
def test_code_that_cannot_be_unpacked(tmp_path, compiler, offset, value, message):
  entry = bytearray(_PTX_ENTRY)
  struct.pack_into("<I", entry, offset, value)
  data = elf_files.library({".nv_fatbin": elf_files.container(_OLD_CODE, bytes(entry))})
  with pytest.raises(ValueError, match=message):
    _added(tmp_path / "library.so", data, compiler, _HOPPER)


def test_the_libraries_of_a_wheel(tmp_path, ptxas):
  wheel, out = tmp_path / "a.whl", tmp_path / "out.zip"
  members = {
      "a/library.so.2": elf_files.library({".nv_fatbin": _COMPILED}),
      "a/other.so": elf_files.library({".text": b"code"}),
      "a/text.so": b"not a library",
      "a/code.py": b"",
  }
  with zipfile.ZipFile(wheel, "w") as archive:
    for name, data in members.items():
      archive.writestr(name, data)
  native_code.compile_wheel(wheel, [_HOPPER], ptxas, out)
  with zipfile.ZipFile(out) as archive:
    assert archive.namelist() == ["a/library.so.2"]
    assert _codes(archive.read("a/library.so.2")) == [["sm_90", "compute_80"]]


def test_a_wheel_without_gpu_code_is_refused(tmp_path, ptxas):
  with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
    archive.writestr("a/other.so", elf_files.library({".text": b"code"}))
  with pytest.raises(ValueError, match="a.whl has no GPU code: build with --config=cuda"):
    native_code.compile_wheel(tmp_path / "a.whl", [_HOPPER], ptxas, tmp_path / "out.zip")
