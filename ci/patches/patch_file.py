# SPDX-License-Identifier: Apache-2.0
"""Reads one patch file, and checks the rules for its header and its hunks."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import re
from collections.abc import Iterator

QUESTIONS = ("Why", "Hooks", "Why-not-outside", "Until", "Test")
CONTEXT = 3

_QUESTION = re.compile(r"([A-Z][A-Za-z-]*): *(.*)")
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@$")
_COMMENT = re.compile(r"\s*(?://|#(?!\s*include\b))\s?(.*)")
# A line of code: it ends a C++ statement or block, is a call and nothing else, or is a Python statement.
_CODE = re.compile(
    r".*[;{}]$|[\w.:>-]+\(.*\)$"
    r"|(?:from \S+ )?import \S+$|(?:return|def|class) .*[):]$"
)


class PatchError(Exception):
  """A patch cannot be read."""


@dataclasses.dataclass(frozen=True)
class Hunk:
  """One change with its context; each line begins with its ' ', '+' or '-'."""

  old_start: int
  lines: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class FileDiff:
  """The changes to one upstream file."""

  old: str
  new: str
  hunks: tuple[Hunk, ...]


@dataclasses.dataclass(frozen=True)
class Patch:
  """A patch, as `parse` reads it."""

  name: str
  header: str
  files: tuple[FileDiff, ...]

  @property
  def paths(self) -> list[str]:
    """The upstream files that the patch changes, relative to the root of the tree."""
    return [file.old.removeprefix("a/") for file in self.files]

  @property
  def changed_lines(self) -> int:
    """The number of added and removed lines."""
    return sum(line[:1] in "+-" for line in self._lines())

  def added(self) -> list[str]:
    return [line[1:] for line in self._lines() if line[:1] == "+"]

  def removed(self) -> list[str]:
    return [line[1:] for line in self._lines() if line[:1] == "-"]

  def _lines(self) -> Iterator[str]:
    for file in self.files:
      for hunk in file.hunks:
        yield from hunk.lines

  def answers(self) -> dict[str, str]:
    """Returns the header's answers by question, in the header's order.

    Raises:
      PatchError: If a line precedes the first question, or a question is answered twice.
    """
    answers: dict[str, str] = {}
    question = None
    for line in self.header.splitlines():
      match = _QUESTION.fullmatch(line)
      if match:
        question = match[1]
        if question in answers:
          raise PatchError(f"'{question}:' is answered twice")
        answers[question] = match[2]
      elif question is None:
        raise PatchError(f"the header starts with '{line}', not '{QUESTIONS[0]}:'")
      else:
        answers[question] = f"{answers[question]} {line.strip()}".strip()
    return answers


def parse(name: str, text: str) -> Patch:
  """Reads a patch.

  Args:
    name: The file's name, for messages.
    text: A header, then any number of unified diffs of files.

  Returns:
    The patch.

  Raises:
    PatchError: If the text is not such a patch; the message names the line.
  """
  lines = text.split("\n")
  if lines.pop():
    raise PatchError(f"{name}: the last line does not end with a newline")
  at = next(
      (i for i, line in enumerate(lines) if line.startswith("--- ")), len(lines)
  )
  header = "".join(f"{line}\n" for line in lines[:at])
  files = []
  while at < len(lines):
    if not (lines[at].startswith("--- ") and lines[at + 1 : at + 2]
            and lines[at + 1].startswith("+++ ")):
      raise PatchError(f"{name}:{at + 1}: expected the lines '--- a/PATH' and '+++ b/PATH'")
    old, new = lines[at][4:], lines[at + 1][4:]
    at += 2
    hunks = []
    while at < len(lines) and not lines[at].startswith("--- "):
      hunk, at = _parse_hunk(name, lines, at)
      hunks.append(hunk)
    files.append(FileDiff(old, new, tuple(hunks)))
  return Patch(name, header, tuple(files))


def _parse_hunk(name: str, lines: list[str], at: int) -> tuple[Hunk, int]:
  """Reads the hunk at line index `at`; returns it and the index after it."""
  match = _HUNK.match(lines[at])
  if not match:
    raise PatchError(f"{name}:{at + 1}: expected a hunk, found '{lines[at]}'")
  old, new = (int(count) if count else 1 for count in (match[2], match[3]))
  start = at = at + 1
  while old > 0 or new > 0:
    kind = lines[at][:1] if at < len(lines) else ""
    if kind not in (" ", "+", "-"):
      raise PatchError(f"{name}:{at + 1}: the hunk is shorter than its first line says")
    old -= kind in " -"
    new -= kind in " +"
    at += 1
  if min(old, new) < 0:
    raise PatchError(f"{name}:{at}: the hunk is longer than its first line says")
  return Hunk(int(match[1]), tuple(lines[start:at])), at


def problems(patch: Patch, root: pathlib.Path) -> list[str]:
  """Checks a patch against the rules that need no upstream source.

  Args:
    patch: The patch.
    root: The project's root folder, for the path in `Test:`.

  Returns:
    One line for each problem; empty if the patch keeps all rules.
  """
  rules = (
      _changes_something,
      _answers_the_questions,
      lambda p: _test_exists(p, root),
      _adds_and_removes_no_file,
      _has_the_usual_context,
      _has_no_trailing_whitespace,
      _has_no_commented_out_code,
  )
  return [problem for rule in rules for problem in rule(patch)]


def _changes_something(patch: Patch) -> Iterator[str]:
  if not patch.changed_lines:
    yield "changes nothing: delete it, or give it a diff"


def _answers_the_questions(patch: Patch) -> Iterator[str]:
  try:
    answers = patch.answers()
  except PatchError as error:
    yield str(error)
    return
  if tuple(answers) != QUESTIONS:
    wanted = ", ".join(f"{question}:" for question in QUESTIONS)
    found = ", ".join(f"{question}:" for question in answers) or "nothing"
    yield f"the header must answer {wanted} in this order; it answers {found}"
  for question, answer in answers.items():
    if not answer:
      yield f"'{question}:' has no answer"


def _test_exists(patch: Patch, root: pathlib.Path) -> Iterator[str]:
  try:
    test = patch.answers().get("Test")
  except PatchError:
    return
  if test and not (root / test).is_file():
    yield f"'Test:' names {test}, which does not exist"


def _adds_and_removes_no_file(patch: Patch) -> Iterator[str]:
  for file in patch.files:
    if "/dev/null" in (file.old, file.new):
      yield (
          f"adds or removes a file ({file.old} -> {file.new}): new files belong"
          " under tensorflow_staging/"
      )
    elif file.old[:2] != "a/" or file.new != f"b/{file.old[2:]}":
      yield f"must name one file as a/PATH and b/PATH, not {file.old}, {file.new}"


def _has_the_usual_context(patch: Patch) -> Iterator[str]:
  for file in patch.files:
    for hunk in file.hunks:
      runs = [
          (kind, len(list(lines)))
          for kind, lines in itertools.groupby(line[:1] for line in hunk.lines)
      ]
      where = f"{file.old}, line {hunk.old_start}"
      if runs[0][0] != " " and hunk.old_start > 1:
        yield f"{where}: the hunk has no context above"
      for at, (kind, length) in enumerate(runs):
        outer = at in (0, len(runs) - 1)
        if kind == " " and length > (CONTEXT if outer else 2 * CONTEXT):
          yield f"{where}: more than {CONTEXT} lines of context"


def _has_no_trailing_whitespace(patch: Patch) -> Iterator[str]:
  for line in patch.header.splitlines() + patch.added():
    if line != line.rstrip():
      yield f"trailing whitespace: '{line}'"


def _has_no_commented_out_code(patch: Patch) -> Iterator[str]:
  removed = {line.strip() for line in patch.removed()}
  for line in patch.added():
    match = _COMMENT.fullmatch(line)
    if not match:
      continue
    content = match[1].strip()
    if content and (content in removed or _CODE.fullmatch(content)):
      yield f"commented-out code: '{line.strip()}'"
