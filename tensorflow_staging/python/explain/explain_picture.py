# SPDX-License-Identifier: Apache-2.0
"""Draws a report of `tf.staging.explain` as a picture, with Graphviz."""

import collections
import json
import os
import pathlib
import subprocess
from collections.abc import Sequence
from typing import Union

from tensorflow_staging.python import vocabulary
from tensorflow_staging.python.explain import explain_boxes
from tensorflow_staging.python.explain import explain_data
from tensorflow_staging.python.explain import explain_graph
from tensorflow_staging.python.explain import explain_text

# Limits that keep the picture readable. All stages together get at most half of the boxes.
_MAX_BOXES = 60
# If there are more stages than this, the last ones are one box.
_MAX_STAGES = 20
_MAX_ONCE_BOXES = 6
_MAX_PLAIN_ARROWS = 120
# An arrow that carries more tensors than this shows their number and total size instead of their names.
_MAX_NAMED_TENSORS = 2
_MAX_LABEL_CHARS = 44

# The time limit for `dot`.
_DOT_SECONDS = 60

# The colours of a cluster and of its boxes.
_STAGE_COLORS = ("#e3f3e3", "#97d097")
_STEP_COLORS = ("#e4ecf8", "#9dbbe3")
_ONCE_COLORS = ("#f6efdf", "#e2cf9f")

# What a dark page shows instead of the colours above, of the background and of texts. The file has it beside Graphviz's
# colours, which other programs that show SVG see.
_DARK_STYLE = """<style>@media(prefers-color-scheme:dark){
.graph>polygon{fill:#1c2128}text{fill:#e6edf3}.node path,.node polygon{stroke:#768390}
[fill="#e3f3e3"]{fill:#1e3a26;stroke:#1e3a26}[fill="#97d097"]{fill:#2f6b3c}
[fill="#e4ecf8"]{fill:#22324a;stroke:#22324a}[fill="#9dbbe3"]{fill:#34588a}
[fill="#f6efdf"]{fill:#3b3322;stroke:#3b3322}[fill="#e2cf9f"]{fill:#6b5926}
[stroke="#b3541e"]{stroke:#f0883e}[fill="#b3541e"]{fill:#f0883e}
}</style>
"""

_HEADER = """\
digraph stages {
  graph [fontname="Helvetica", fontsize=11, labelloc=t, ranksep=0.7, nodesep=0.3];
  node [shape=box, style="filled,rounded", color="#666666", fontname="Helvetica", fontsize=10];
  edge [color="#999999", fontname="Helvetica", fontsize=9];
"""


def dot(report: explain_data.ReportData) -> str:
  """Draws the stages, the step and what runs once in colours of their own, and the boundary as labelled arrows.

  Leaves out the nodes that depend on no source, because both sides use them, and the ops that start
  and stop a stage.

  Args:
    report: The report.

  Returns:
    The source text of the picture, in Graphviz's language.
  """
  clusters = _clusters(len(report.stages))
  members = collections.defaultdict(list)
  for index, (_, _, side) in enumerate(report.graph.nodes):
    members[side].append(index)
  lines = []
  box_of = {}  # Maps the index of a node to the number of its box.
  count = 0
  for sides in clusters:
    nodes = [node for side in sides for node in members[side]]
    if not nodes:
      continue
    body = []
    for box in explain_boxes.boxes(
        [name for name, _, _ in report.graph.nodes], nodes, _limit(sides, len(clusters), count)):
      body.append(f"b{count} [label={_quoted(_box_label(report, box))}];")
      box_of |= dict.fromkeys(box.members, count)
      count += 1
    lines += _cluster(report, sides, nodes, body)
  lines += _boundary_arrows(report, box_of)
  plain, left_out = _plain_arrows(report, box_of)
  title = explain_text.summary(report)
  if shared := members[explain_graph.SHARED]:
    title += f"\nNot drawn: {explain_text.counted(len(shared), 'node')} that depend on no source of records."
  if control := members[explain_graph.CONTROL]:
    title += f"\nNot drawn: {explain_text.counted(len(control), 'node')} that start and stop manual stages."
  if left_out:
    title += f"\nNot drawn: the {left_out} arrows that stand for the fewest edges."
  body = "".join(f"  {line}\n" for line in [f"label={_quoted(title)};", *lines, *plain])
  return f"{_HEADER}{body}}}\n"


def save_svg(source: str, path: Union[str, os.PathLike]) -> None:
  """Draws a picture into an SVG file, with Graphviz's program `dot`.

  Args:
    source: The source text of the picture, in Graphviz's language.
    path: The file, which is overwritten if it exists.

  Raises:
    RuntimeError: If `dot` is not installed, fails, or takes longer than a minute.
    OSError: If the file cannot be written.
  """
  try:
    done = subprocess.run(
        ["dot", "-Tsvg"], input=source.encode(), capture_output=True, timeout=_DOT_SECONDS, check=False)
  except FileNotFoundError as error:
    raise RuntimeError(
        "Graphviz's program `dot`, which draws the pictures, was not found. Install it, for example"
        " with `apt-get install graphviz`, or draw the output of to_dot() on another machine.") from error
  except subprocess.TimeoutExpired as error:
    raise RuntimeError(f"Graphviz's `dot` did not end within {_DOT_SECONDS} seconds and was killed.") from error
  if done.returncode != 0:
    message = done.stderr.decode(errors="replace")[-1000:]
    raise RuntimeError(f"Graphviz's `dot` failed with exit status {done.returncode}: {message}")
  pathlib.Path(path).write_bytes(done.stdout.replace(b"<g ", _DARK_STYLE.encode() + b"<g ", 1))


def _clusters(stages: int) -> list[tuple[int, ...]]:
  """Returns the sides that each frame of the picture shows.

  The step comes last, so that it gets all the boxes that the others leave. Each stage has its own frame, except the
  last ones of many.
  """
  alone = stages if stages <= _MAX_STAGES else _MAX_STAGES - 1
  clusters = [(stage,) for stage in range(alone)]
  if alone < stages:
    clusters.append(tuple(range(alone, stages)))
  return [*clusters, (explain_graph.ONCE,), (explain_graph.STEP,)]


def _limit(sides: tuple[int, ...], clusters: int, used: int) -> int:
  """Returns the maximum number of boxes in a frame, one of `clusters`, when those before it have `used` boxes."""
  if sides == (explain_graph.STEP,):
    return _MAX_BOXES - used
  if sides == (explain_graph.ONCE,):
    return _MAX_ONCE_BOXES
  return 1 if len(sides) > 1 else _MAX_BOXES // 2 // (clusters - 2)


def _box_label(report: explain_data.ReportData, box: explain_boxes.Box) -> str:
  label = _shortened(box.label)
  if len(box.members) > 1:
    return f"{label}\n{len(box.members)} nodes"
  return f"{label}\n({report.graph.nodes[box.members[0]][1]})"


def _cluster(
    report: explain_data.ReportData, sides: tuple[int, ...], nodes: Sequence[int], body: Sequence[str]) -> list[str]:
  """Returns the lines that frame the boxes of one stage, of several stages, of the step, or of what runs once."""
  name, label, colors, count = "step", "the step", _STEP_COLORS, len(nodes)
  if sides == (explain_graph.ONCE,):
    name, label, colors = "once", "runs once, before the first step", _ONCE_COLORS
  elif sides != (explain_graph.STEP,):
    name, colors = f"stage{sides[0]}", _STAGE_COLORS
    if len(sides) == 1:
      stage = report.stages[sides[0]]
      label = f"ahead of the step: {'manual ' if stage.by_hand else ''}stage '{stage.name}'"
    else:
      label = f"ahead of the step: {len(sides)} more stages"
    # The Take of a manual stage runs in the step, and is drawn where the stage ends.
    count -= sum(report.graph.nodes[node][1] == vocabulary.TAKE_OP for node in nodes)
  return [
      f"subgraph cluster_{name} {{",
      f"  label={_quoted(f'{label}, ' + explain_text.counted(count, 'node'))};",
      f'  style=filled; color="{colors[0]}";',
      f'  node [fillcolor="{colors[1]}"];',
      *(f"  {line}" for line in body),
      "}",
  ]


def _boundary_arrows(report: explain_data.ReportData, box_of: dict[int, int]) -> list[str]:
  """Returns the arrows from a stage to the step or to a later stage, labelled with their tensors."""
  tensors = {tensor.name: tensor for stage in report.stages for tensor in stage.boundary}
  carried = collections.defaultdict(dict)
  for src, output, dst in report.graph.edges:
    name, _, side = report.graph.nodes[src]
    tensor = tensors.get(f"{name}:{output}")
    if tensor and dst in box_of and report.graph.nodes[dst][2] != side and box_of[src] != box_of[dst]:
      carried[box_of[src], box_of[dst]][tensor.name] = tensor
  return [
      f"b{src} -> b{dst} [color=\"#b3541e\", penwidth=2, label={_quoted(_arrow_label(list(found.values())))}];"
      for (src, dst), found in sorted(carried.items())
  ]


def _arrow_label(tensors: Sequence[explain_data.BoundaryTensor]) -> str:
  if len(tensors) > _MAX_NAMED_TENSORS:
    return f"{len(tensors)} tensors,\n{explain_text.total_size(tensors)}"
  return "\n".join(
      f"{_shortened(tensor.name)}\n{explain_text.type_and_shape(tensor)}, {explain_text.size(tensor)}"
      for tensor in tensors)


def _plain_arrows(report: explain_data.ReportData, box_of: dict[int, int]) -> tuple[list[str], int]:
  """Returns the arrows for all other edges, and the number of arrows omitted because of the limit."""
  nodes = report.graph.nodes
  tensors = {tensor.name for stage in report.stages for tensor in stage.boundary}
  edges = collections.Counter()
  for src, output, dst in report.graph.edges:
    name, _, side = nodes[src]
    crosses = nodes[dst][2] != side and f"{name}:{output}" in tensors
    if src in box_of and dst in box_of and not crosses:
      edges[box_of[src], box_of[dst]] += 1
  puts = [index for index, (_, op, _) in enumerate(nodes) if op == vocabulary.PUT_OP]
  # The graph has no edge from the Put to the Take of a manual stage; the picture shows their buffer as an arrow.
  takes = {side: index for index, (_, op, side) in enumerate(nodes) if op == vocabulary.TAKE_OP}
  for put in puts:
    take = takes.get(nodes[put][2])
    if put in box_of and take in box_of:
      edges[box_of[put], box_of[take]] += 1
  drawn = sorted((edge for edge in edges if edge[0] != edge[1]), key=lambda edge: (-edges[edge], edge))
  lines = [f"b{src} -> b{dst};" for src, dst in sorted(drawn[:_MAX_PLAIN_ARROWS])]
  return lines, len(drawn) - len(lines)


def _shortened(name: str) -> str:
  return name if len(name) <= _MAX_LABEL_CHARS else "..." + name[3 - _MAX_LABEL_CHARS:]


def _quoted(text: str) -> str:
  """Returns `text` as a string literal of Graphviz's language."""
  return json.dumps(text, ensure_ascii=False)
