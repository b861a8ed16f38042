# SPDX-License-Identifier: Apache-2.0
"""Which GPU code runs on which chip: CUDA's rules for machine code (SASS) and for its intermediate language (PTX)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Chip(NamedTuple):
  """A chip's compute capability: 9.0 is Hopper, sm_90."""

  major: int
  minor: int

  def __str__(self) -> str:
    return f"sm_{self.major}{self.minor}"


class Code(NamedTuple):
  """Code of one chip ("sm_80"), or PTX that drivers compile for it and for later ones ("compute_80").

  Attributes:
    ptx: Whether it is PTX.
    chip: The chip that it was compiled for.
  """

  ptx: bool
  chip: Chip

  def __str__(self) -> str:
    return f"compute_{self.chip.major}{self.chip.minor}" if self.ptx else str(self.chip)

  def runs_on(self, chip: Chip) -> bool:
    """Whether a chip can run it: PTX of its own or an older version, SASS of its own generation."""
    return self.chip <= chip and (self.ptx or self.chip.major == chip.major)


def parse_chip(text: str) -> Chip:
  """Reads a chip: "sm_90", "90" or, as nvidia-smi writes it, "9.0".

  Raises:
    ValueError: If the text is none of these.
  """
  match = re.fullmatch(r"(?:sm_)?(\d+)(\d)|(\d+)\.(\d)", text.strip())
  if match is None:
    raise ValueError(f'"{text}" is not a chip: write, for example, sm_90 or 9.0')
  return Chip(*(int(group) for group in match.groups() if group is not None))


def parse_code(text: str) -> Code:
  """Reads what str(Code) writes.

  Raises:
    ValueError: If the text is not code.
  """
  ptx = text.startswith("compute_")
  return Code(ptx, parse_chip("sm_" + text.removeprefix("compute_") if ptx else text))


def best(codes: Iterable[Code], chip: Chip) -> Code | None:
  """Returns the code that the driver takes for a chip.

  It is the newest SASS that runs there. Only where there is none does the driver compile the newest PTX that it can.
  """
  return max((code for code in codes if code.runs_on(chip)), key=lambda code: (not code.ptx, code.chip), default=None)
