# SPDX-License-Identifier: Apache-2.0
"""Computes a wheel's platform tag from the symbol versions that its libraries need.

A manylinux tag (PEP 600) promises that the wheel runs on every system whose C library is at least as new as the tag
says. auditwheel's policies list how new the C++ library of such a system is.
"""

from __future__ import annotations

import pathlib
import re
import subprocess

_Version = tuple[int, ...]

# The glibc version of each tag, and the newest GLIBCXX version that all its systems have (auditwheel's manylinux
# policies).
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
  """Finds the newest GLIBC and GLIBCXX versions that a library needs.

  Args:
    version_info: The output of `readelf --version-info` for the library.

  Returns:
    The two versions; (0,) if the library needs none.
  """

  def newest(prefix: str) -> _Version:
    found = re.findall(rf"Name: {prefix}_([0-9.]+)", version_info)
    return max((tuple(map(int, v.split("."))) for v in found), default=(0,))

  return newest("GLIBC"), newest("GLIBCXX")


def tag_for(glibc: _Version, libstdcxx: _Version) -> str:
  """Returns the oldest manylinux tag whose systems have these versions.

  Raises:
    ValueError: If no known tag has versions that new.
  """
  for tag, newest_libstdcxx in sorted(_LIBSTDCXX_OF_GLIBC.items()):
    if tag >= glibc and newest_libstdcxx >= libstdcxx:
      return f"manylinux_{tag[0]}_{tag[1]}_x86_64"
  raise ValueError(
      f"No manylinux tag allows GLIBC {glibc} with GLIBCXX {libstdcxx}; the newest known is"
      f" {max(_LIBSTDCXX_OF_GLIBC.items())}. Add the new policy to platform_tag.py."
  )


def tag_of(libraries: list[pathlib.Path], at_least: _Version) -> str:
  """Returns the tag of a wheel.

  Args:
    libraries: The libraries that this project built.
    at_least: The glibc version in the base wheel's tag.

  Raises:
    ValueError: If no known tag allows the versions that the libraries need.
  """
  glibc, libstdcxx = at_least, (0,)
  for library in libraries:
    printed = subprocess.run(
        ["readelf", "--wide", "--version-info", str(library)], check=True, capture_output=True, text=True
    ).stdout
    needs = needed_versions(printed)
    glibc, libstdcxx = max(glibc, needs[0]), max(libstdcxx, needs[1])
  return tag_for(glibc, libstdcxx)
