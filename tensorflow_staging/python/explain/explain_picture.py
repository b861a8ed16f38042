# SPDX-License-Identifier: Apache-2.0
"""A report of `tf.staging.explain` as a picture, drawn by Graphviz."""

from __future__ import annotations

import collections
import json
import os
import pathlib
import subprocess
import typing
from collections.abc import Sequence

from tensorflow_staging.python.explain import explain_boxes
from tensorflow_staging.python.explain import explain_graph
from tensorflow_staging.python.explain import explain_text

if typing.TYPE_CHECKING:
  from tensorflow_staging.python.explain import explain_report

# How much a reader can follow. The stages get up to half of the boxes.
_MAX_BOXES = 60
_MAX_PLAIN_LINES = 120
# Of the tensors between two boxes, up to this many are named.
_MAX_NAMED_TENSORS = 2
_MAX_LABEL = 44

# How long `dot` may take.
_DOT_SECONDS = 60

_STAGE_COLORS = ("#e3f3e3", "#97d097")  # Of the region and of its boxes.
_STEP_COLORS = ("#e4ecf8", "#9dbbe3")

_HEADER = """\
digraph stages {
  graph [fontname="Helvetica", fontsize=11, labelloc=t, ranksep=0.7, nodesep=0.3];
  node [shape=box, style="filled,rounded", color="#666666", fontname="Helvetica", fontsize=10];
  edge [color="#999999", fontname="Helvetica", fontsize=9];
"""


def dot(report: explain_report.StageReport) -> str:
  """Draws the stages in one colour, the step in another, and the boundary as labelled arrows.

  Nodes that depend on no source of records are left out, as both sides have them.

  Args:
    report: The report.

  Returns:
    The picture's source in Graphviz's language.
  """
  members = collections.defaultdict(list)
  for index, (_, _, place) in enumerate(report.graph.nodes):
    members[place].append(index)
  shared = len(members.pop(explain_graph.SHARED, ()))
  lines = []
  box_of = {}  # The number of the box of each node.
  count = 0
  # Stages first, so that the step gets what they leave of the boxes.
  for place in sorted(members, key=lambda place: (place < 0, place)):
    region = []
    for box in explain_boxes.boxes(
        [name for name, _, _ in report.graph.nodes], members[place], _limit(report, place, count)):
      region.append(f"b{count} [label={_quoted(_box_label(report, box))}];")
      box_of |= dict.fromkeys(box.members, count)
      count += 1
    lines += _region(report, place, len(members[place]), region)
  lines += _boundary_arrows(report, box_of)
  plain, left_out = _plain_arrows(report, box_of)
  title = explain_text.text(report).partition("\n")[0]
  if shared:
    title += f"\nNot drawn: {explain_text.counted(shared, 'node')} that depend on no source of records."
  if left_out:
    title += f"\nNot drawn: the {left_out} arrows that stand for the fewest edges."
  body = "".join(f"  {line}\n" for line in [f"label={_quoted(title)};", *lines, *plain])
  return f"{_HEADER}{body}}}\n"


def save_svg(source: str, path: str | os.PathLike) -> None:
  """Has Graphviz draw a picture into a file.

  Args:
    source: The picture in Graphviz's language.
    path: The file.

  Raises:
    RuntimeError: If `dot` is not installed, fails, or takes too long.
    OSError: If the file cannot be written.
  """
  try:
    done = subprocess.run(
        ["dot", "-Tsvg"], input=source.encode(), capture_output=True, timeout=_DOT_SECONDS, check=False)
  except FileNotFoundError as error:
    raise RuntimeError(
        "Pictures are drawn by Graphviz, whose program `dot` was not found. Install it, for example"
        " with `apt-get install graphviz`, or draw the text of to_dot() elsewhere.") from error
  except subprocess.TimeoutExpired as error:
    raise RuntimeError(f"Graphviz's `dot` was given up after {_DOT_SECONDS} seconds.") from error
  if done.returncode != 0:
    message = done.stderr.decode(errors="replace")[-1000:]
    raise RuntimeError(f"Graphviz's `dot` ended with {done.returncode}: {message}")
  pathlib.Path(path).write_bytes(done.stdout)


def _limit(report, place: int, used: int) -> int:
  """How many boxes a region may have."""
  if place == explain_graph.STEP:
    return max(1, _MAX_BOXES - used)
  return max(1, _MAX_BOXES // 2 // len(report.stages))


def _box_label(report, box: explain_boxes.Box) -> str:
  label = _shortened(box.label)
  if len(box.members) > 1:
    return f"{label}\n{len(box.members)} nodes"
  return f"{label}\n({report.graph.nodes[box.members[0]][1]})"


def _region(report, place: int, nodes: int, body: Sequence[str]) -> list[str]:
  if place == explain_graph.STEP:
    name, label, colors = "step", "the step", _STEP_COLORS
  else:
    stage = report.stages[place]
    name, colors = f"stage{place}", _STAGE_COLORS
    label = f"ahead of the step: stage '{stage.name}'{' of tf.staged' if stage.by_hand else ''}"
  return [
      f"subgraph cluster_{name} {{",
      f"  label={_quoted(f'{label}, ' + explain_text.counted(nodes, 'node'))};",
      f'  style=filled; color="{colors[0]}";',
      f'  node [fillcolor="{colors[1]}"];',
      *(f"  {line}" for line in body),
      "}",
  ]


def _boundary_arrows(report, box_of: dict[int, int]) -> list[str]:
  """Arrows from stages to the step, and to later stages, with the tensors that they carry."""
  tensors = {tensor.name: tensor for stage in report.stages for tensor in stage.boundary}
  carried = collections.defaultdict(dict)
  for src, output, dst in report.graph.edges:
    name, _, place = report.graph.nodes[src]
    tensor = tensors.get(f"{name}:{output}")
    if tensor and dst in box_of and report.graph.nodes[dst][2] != place:
      carried[box_of[src], box_of[dst]][tensor.name] = tensor
  return [
      f"b{src} -> b{dst} [color=\"#b3541e\", penwidth=2, label={_quoted(_tensors(list(found.values())))}];"
      for (src, dst), found in sorted(carried.items())
  ]


def _tensors(tensors: list) -> str:
  if len(tensors) > _MAX_NAMED_TENSORS:
    return f"{len(tensors)} tensors,\n{explain_text.total_size(tensors)}"
  return "\n".join(
      f"{_shortened(tensor.name)}\n{explain_text.type_and_shape(tensor)}, {explain_text.size(tensor)}"
      for tensor in tensors)


def _plain_arrows(report, box_of: dict[int, int]) -> tuple[list[str], int]:
  """Arrows for all other edges, and how many are left out because there are too many."""
  nodes = report.graph.nodes
  tensors = {tensor.name for stage in report.stages for tensor in stage.boundary}
  edges = collections.Counter()
  for src, output, dst in report.graph.edges:
    name, _, place = nodes[src]
    crosses = nodes[dst][2] != place and f"{name}:{output}" in tensors
    if src in box_of and dst in box_of and not crosses:
      edges[box_of[src], box_of[dst]] += 1
  puts = [index for index, (_, op, _) in enumerate(nodes) if op == "TensorBufferPut"]
  takes = {place: index for index, (_, op, place) in enumerate(nodes) if op == "TensorBufferTake"}
  for put in puts:
    take = takes.get(nodes[put][2])
    if put in box_of and take in box_of:
      edges[box_of[put], box_of[take]] += 1
  drawn = sorted((edge for edge in edges if edge[0] != edge[1]), key=lambda edge: (-edges[edge], edge))
  lines = [f"b{src} -> b{dst};" for src, dst in sorted(drawn[:_MAX_PLAIN_LINES])]
  return lines, len(drawn) - len(lines)


def _shortened(name: str) -> str:
  return name if len(name) <= _MAX_LABEL else "..." + name[3 - _MAX_LABEL:]


def _quoted(text: str) -> str:
  """A string of Graphviz's language."""
  return json.dumps(text, ensure_ascii=False)
