# SPDX-License-Identifier: Apache-2.0
import platform_tag
import pytest

_PRINTED = """
  0x0010:   Name: GLIBCXX_3.4.9  Flags: none  Version: 5
  0x0020:   Name: GLIBCXX_3.4.29  Flags: none  Version: 4
  0x0040:   Name: GLIBC_2.2.5  Flags: none  Version: 3
  0x0050:   Name: GLIBC_2.32  Flags: none  Version: 2
  0x0060:   Name: CXXABI_1.3.9  Flags: none  Version: 6
"""


def test_newest_versions_are_compared_as_numbers():
  assert platform_tag.needed_versions(_PRINTED) == ((2, 32), (3, 4, 29))


def test_library_that_needs_no_version():
  assert platform_tag.needed_versions("") == ((0,), (0,))


@pytest.mark.parametrize(
    ("glibc", "libstdcxx", "tag"),
    [
        ((2, 17), (3, 4, 19), "manylinux_2_17_x86_64"),
        ((2, 14), (3, 4, 20), "manylinux_2_24_x86_64"),
        ((2, 32), (3, 4, 29), "manylinux_2_34_x86_64"),
        ((2, 34), (3, 4, 30), "manylinux_2_35_x86_64"),
    ],
)
def test_tag_is_the_oldest_that_fits(glibc, libstdcxx, tag):
  assert platform_tag.tag_for(glibc, libstdcxx) == tag


def test_versions_that_no_tag_has_are_refused():
  with pytest.raises(ValueError, match=r"No manylinux tag allows GLIBC \(2, 99\)"):
    platform_tag.tag_for((2, 99), (3, 4))
