# SPDX-License-Identifier: Apache-2.0
"""Tests of fatbin.py, which reads GPU code, and of zeroing.py."""

import chips
import elf_files
import fatbin
import pytest
import zeroing

_HOPPER = chips.Chip(9, 0)
_AMPERE = chips.Chip(8, 0)


def _entries(data: bytes) -> list[list[tuple[str, bytes]]]:
  """Returns the code and the content of each entry of each container."""
  return [
      [(str(entry.code), data[entry.offset:entry.offset + entry.size]) for entry in container.entries]
      for container in fatbin.containers(data)
  ]


def _kept(tmp_path, data: bytes, *target: chips.Chip) -> tuple[bytes, zeroing.Kept]:
  path = tmp_path / "library.so"
  path.write_bytes(data)
  kept = zeroing.keep_only(path, target)
  return path.read_bytes(), kept


_SEVERAL = elf_files.container(
    elf_files.entry("sm_80", b"A" * 24), elf_files.entry("sm_90", b"H" * 40), elf_files.entry("compute_90", b"P" * 16))
_PTX_ONLY = elf_files.container(
    elf_files.entry("sm_80", b"a" * 8), elf_files.entry("compute_60", b"o" * 8),
    elf_files.entry("compute_80", b"n" * 8))
_AMPERE_ONLY = elf_files.container(elf_files.entry("sm_80", b"x" * 8))


def test_entries_of_all_containers_are_found():
  # The linker pads sections with zeros; a container may begin after some.
  data = elf_files.library({".nv_fatbin": _SEVERAL + bytes(24) + _PTX_ONLY, "__nv_relfatbin": _AMPERE_ONLY})
  assert _entries(data) == [
      [("sm_80", b"A" * 24), ("sm_90", b"H" * 40), ("compute_90", b"P" * 16)],
      [("sm_80", b"a" * 8), ("compute_60", b"o" * 8), ("compute_80", b"n" * 8)],
      [("sm_80", b"x" * 8)],
  ]


def test_only_the_code_that_the_driver_takes_is_kept(tmp_path):
  data = elf_files.library({".text": b"code", ".nv_fatbin": _SEVERAL + _PTX_ONLY + _AMPERE_ONLY})
  changed, kept = _kept(tmp_path, data, _HOPPER)
  zeros = bytes(8)
  assert _entries(changed) == [
      [("sm_80", bytes(24)), ("sm_90", b"H" * 40), ("compute_90", bytes(16))],
      [("sm_80", zeros), ("compute_60", zeros), ("compute_80", b"n" * 8)],
      [("sm_80", zeros)],
  ]
  sass, ptx = chips.parse_code("sm_90"), chips.parse_code("compute_80")
  assert kept == zeroing.Kept({(sass,): 1, (ptx,): 1, (): 1}, before=112, after=48)
  # All but the content of entries is unchanged.
  for content in (b"A" * 24, b"P" * 16, b"a" * 8, b"o" * 8, b"x" * 8):
    data = data.replace(content, bytes(len(content)))
  assert changed == data


def test_several_chips_keep_the_code_of_each(tmp_path):
  data = elf_files.library({".nv_fatbin": _SEVERAL + _PTX_ONLY})
  changed, kept = _kept(tmp_path, data, _HOPPER, _AMPERE)
  assert [code for code, content in _entries(changed)[0] if content.strip(b"\0")] == ["sm_80", "sm_90"]
  assert [code for code, content in _entries(changed)[1] if content.strip(b"\0")] == ["sm_80", "compute_80"]
  assert kept.after == 24 + 40 + 8 + 8


def test_containers_among_other_data_are_found(tmp_path):
  # One at an odd place; one that ends behind its section; and bytes that only begin as a container does.
  odd = elf_files.container(elf_files.entry("sm_90", b"k" * 8, kind=16))
  data = elf_files.library({
      ".rodata": b"abc" + _SEVERAL + b"between" + odd + _AMPERE_ONLY, ".data": _SEVERAL[:-4],
      ".cask_resource": b"table" + _SEVERAL, ".text": _SEVERAL})
  changed, kept = _kept(tmp_path, data, _HOPPER)
  assert kept.containers == {(chips.parse_code("sm_90"),): 2, (): 1}
  assert b"A" * 24 not in changed[:changed.index(b"between")]
  assert b"table" + _SEVERAL not in changed
  assert changed.count(_SEVERAL) == 1
  assert odd in changed
  assert _SEVERAL[:-4] in changed


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (b"\x01" * 64, "no container of GPU code that this program knows, at 0x40"),
        (_SEVERAL[:-4], "no container of GPU code that this program knows, at 0x40"),
        (b"\x01" * 8, "unknown bytes at 0x40"),
        (elf_files.container(elf_files.entry("sm_90", b"k" * 8, kind=16)), "at 0x50: kind 16, header 64"),
        (elf_files.container(elf_files.entry("sm_90", b"")[:20]), "an entry of GPU code at 0x50 is cut off"),
    ],
)
def test_an_unknown_layout_is_an_error_and_changes_nothing(tmp_path, section, message):
  data = elf_files.library({".nv_fatbin": section})
  with pytest.raises(ValueError, match=message):
    _kept(tmp_path, data, _HOPPER)
  assert (tmp_path / "library.so").read_bytes() == data


def test_inputs_of_the_linker_are_zeroed_as_nothing_loads_them(tmp_path):
  changed, kept = _kept(tmp_path, elf_files.library({"__nv_relfatbin": _PTX_ONLY}), _HOPPER)
  assert [content for _, content in _entries(changed)[0]] == [bytes(8)] * 3
  assert kept == zeroing.Kept({(): 1}, before=24, after=0)


def test_a_library_without_gpu_code(tmp_path):
  data = elf_files.library({".text": b"code"})
  assert _kept(tmp_path, data, _HOPPER) == (data, zeroing.Kept({}, 0, 0))


@pytest.mark.parametrize("data", [b"", b"no ELF file" * 10, elf_files.library({".text": b"code"})[:-1]])
def test_other_files_are_refused(tmp_path, data):
  with pytest.raises(ValueError):
    list(fatbin.containers(data))
