# SPDX-License-Identifier: Apache-2.0
"""Writes the report about a kit on a machine, in Markdown."""

from __future__ import annotations

import collections
import datetime
import pathlib
import xml.etree.ElementTree as ElementTree
from typing import Any
from typing import NamedTuple

import budget
import machine as machines

# The end of a failed program's log that the report shows, in lines.
_LOG_LINES = 40


class Step(NamedTuple):
  """A step of the run, and how it ended.

  Attributes:
    name: The step's name, as a heading.
    result: How it ended.
    log: What it printed, if it ran, without what it printed for the report.
    output: What it printed for the report, in Markdown, if it is a step that does.
  """

  name: str
  result: budget.Result
  log: pathlib.Path
  output: pathlib.Path | None = None


def report(
    about: dict[str, Any],
    machine: machines.Machine | None,
    problem: str | None,
    steps: list[Step],
    junit: list[pathlib.Path],
) -> str:
  """Returns the report.

  Args:
    about: The kit's description, from kit.json.
    machine: The machine, unless looking at it failed.
    problem: Why the GPU could not be used, if so.
    steps: The steps so far.
    junit: The tests' results in JUnit's format. A file that does not exist is of a program that crashed.
  """
  gpu = machine.gpus[0].name if machine and machine.gpus else "a machine without a GPU"
  parts = [f"# {about['wheel']} on {gpu}", *([f"**{problem}**"] if problem else [])]
  parts.append(_table(("", ""), _facts(about, machine)))
  parts.append("## Steps")
  parts.append(_table(
      ("step", "result", "seconds"),
      [(step.name, step.result.outcome, f"{step.result.seconds:.1f}") for step in steps]))
  if any(path.exists() for path in junit):
    parts += ["## Tests", _tests([path for path in junit if path.exists()])]
  for step in steps:
    if step.output and (text := _read(step.output).strip()):
      parts += [f"## {step.name}", text]
    if not step.result.passed and (text := _read(step.log).strip()):
      lines = text.splitlines()[-_LOG_LINES:]
      parts += [f"## {step.name}: the last lines of its log", "\n".join(["```", *lines, "```"])]
  return "\n\n".join(parts) + "\n"


def _facts(about: dict[str, Any], machine: machines.Machine | None) -> list[tuple[str, str]]:
  facts = [
      ("date", datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")),
      (f"kit of the {about['kind']}", f"{about['wheel']}, commit {about['commit']}"),
      ("TensorFlow", f"{about['tensorflow']}, compiled with CUDA {about['cuda']}"),
      ("code for", ", ".join(about["chips"]) or "all chips"),
      ("empty stand-ins", ", ".join(about["stand_ins"]) or "none"),
  ]
  facts += [(name, version) for name, version in about["packages"].items() if name.startswith("nvidia-")]
  if machine:
    facts += [
        ("system", machine.system),
        ("processor", f"{machine.processor}, {machine.cores} cores, {machine.memory / 1e9:.0f} GB"),
        ("driver", _driver(machine)),
        *(("GPU", f"{gpu.name}, {gpu.chip}, {gpu.memory / 1e9:.0f} GB") for gpu in machine.gpus),
    ]
  return facts


def _driver(machine: machines.Machine) -> str:
  if machine.driver is None:
    return "none"
  return f"{machine.version or 'of unknown version'}, for CUDA {machine.cuda // 1000}.{machine.cuda % 1000 // 10}"


def _tests(junit: list[pathlib.Path]) -> str:
  rows = []
  for path in junit:
    try:
      rows += [_test(case) for case in ElementTree.parse(path).getroot().iter("testcase")]
    except ElementTree.ParseError as error:
      rows.append((path.name, f"failed: its results cannot be read: {error}", "", ""))
  counts = collections.Counter(row[1].partition(":")[0] for row in rows)
  summary = ", ".join(f"{counts[word]} {word}" for word in ("passed", "failed", "skipped"))
  return f"{summary}.\n\n" + _table(("test", "result", "seconds", "measured"), rows)


def _test(case: ElementTree.Element) -> tuple[str, ...]:
  outcome = "passed"
  for kind, word in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
    if (found := case.find(kind)) is not None:
      outcome = f"{word}: {(found.get('message') or '').strip().splitlines()[0] if found.get('message') else ''}"
      break
  measured = "; ".join(f"{item.get('name')} {item.get('value')}" for item in case.iter("property"))
  file = (case.get("classname") or "").rpartition(".")[2]
  return f"{file}::{case.get('name')}", outcome, f"{float(case.get('time') or 0):.1f}", measured


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
  lines = [head, ("---",) * len(head), *rows]
  return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


def _read(path: pathlib.Path) -> str:
  return path.read_text(errors="replace") if path.exists() else ""
