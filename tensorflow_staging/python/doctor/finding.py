# SPDX-License-Identifier: Apache-2.0
"""What a check of the doctor found. Needs no TensorFlow."""

import dataclasses
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True)
class Finding:
  """What a check found.

  Attributes:
    check: The name of the check.
    text: What it found, as a sentence.
    advice: What to do about it, as a sentence; empty unless it is a problem.
  """
  check: str
  text: str
  advice: str = ""

  @property
  def is_problem(self) -> bool:
    """Whether something must be done."""
    return bool(self.advice)

  def __str__(self) -> str:
    mark = "PROBLEM" if self.is_problem else "ok"
    lines = [f"{mark:<8}{self.check}: {self.text}"]
    if self.is_problem:
      lines.append(f"        What to do: {self.advice}")
    return "\n".join(lines)


def exit_status(findings: Iterable[Finding]) -> int:
  """Returns the exit status of the doctor: 1 if there is a problem, otherwise 0."""
  return int(any(finding.is_problem for finding in findings))
