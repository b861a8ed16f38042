# SPDX-License-Identifier: Apache-2.0
"""Which systems a wheel runs on: read from what its libraries ask for, never claimed.

A manylinux tag (PEP 600) promises that the wheel runs wherever the C library is
at least as new as the tag says; the C++ library of such systems is as new as
auditwheel's policies list.
"""

from __future__ import annotations

import pathlib
import re
import subprocess

_Version = tuple[int, ...]

# glibc of the tag -> newest GLIBCXX that its systems have (auditwheel's
# manylinux policies).
_LIBSTDCXX_OF_GLIBC: dict[_Version, _Version] = {
    (2, 17): (3, 4, 19),
    (2, 24): (3, 4, 22),
    (2, 28): (3, 4, 24),
    (2, 31): (3, 4, 28),
    (2, 34): (3, 4, 29),
    (2, 35): (3, 4, 30),
    (2, 38): (3, 4, 32),
    (2, 39): (3, 4, 33),
}


def needed_versions(version_info: str) -> tuple[_Version, _Version]:
  """The newest GLIBC and GLIBCXX that a library asks for.

  Args:
    version_info: what `readelf --version-info` prints of it.

  Returns:
    Two versions, (0,) where it asks for none.
  """

  def newest(prefix: str) -> _Version:
    found = re.findall(rf"Name: {prefix}_([0-9.]+)", version_info)
    return max((tuple(map(int, v.split("."))) for v in found), default=(0,))

  return newest("GLIBC"), newest("GLIBCXX")


def tag_for(glibc: _Version, libstdcxx: _Version) -> str:
  """The oldest manylinux tag that is true for these needs.

  Raises:
    ValueError: no known tag has a C++ library that new.
  """
  for tag, newest_libstdcxx in sorted(_LIBSTDCXX_OF_GLIBC.items()):
    if tag >= glibc and newest_libstdcxx >= libstdcxx:
      return f"manylinux_{tag[0]}_{tag[1]}_x86_64"
  raise ValueError(
      f"No manylinux tag allows GLIBC {glibc} with GLIBCXX {libstdcxx}; the newest known is"
      f" {max(_LIBSTDCXX_OF_GLIBC.items())}. Add the new policy to platform_tag.py."
  )


def tag_of(libraries: list[pathlib.Path], at_least: _Version) -> str:
  """The tag of a wheel.

  Args:
    libraries: the libraries that were built here.
    at_least: the glibc that the rest of the wheel was tagged with.
  """
  glibc, libstdcxx = at_least, (0,)
  for library in libraries:
    printed = subprocess.run(
        ["readelf", "--wide", "--version-info", str(library)], check=True, capture_output=True, text=True
    ).stdout
    needs = needed_versions(printed)
    glibc, libstdcxx = max(glibc, needs[0]), max(libstdcxx, needs[1])
  return tag_for(glibc, libstdcxx)
