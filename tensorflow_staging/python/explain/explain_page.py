# SPDX-License-Identifier: Apache-2.0
"""Writes a report of `tf.staging.explain` as one HTML page that needs no other file."""

import base64
import hashlib
import html
import itertools
import pathlib
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import TypeVar

from tensorflow_staging.python.explain import explain_data
from tensorflow_staging.python.explain import explain_graph
from tensorflow_staging.python.explain import explain_groups
from tensorflow_staging.python.explain import explain_page_data
from tensorflow_staging.python.explain import explain_text

# The maximum number of rows of a table or list that does not grow as the reader asks for more.
_MAX_ROWS = 200
# A longer list is shown by name scope, in at most so many groups, each of which the reader may open.
_MAX_PLAIN = 12
_MAX_GROUPS = 12
# The first stages are shown open.
_MAX_OPEN_STAGES = 3

_Item = TypeVar("_Item")

_FOLDER = pathlib.Path(__file__).parent
_TITLE = "What runs ahead of the step"


def page(report: explain_data.ReportData) -> str:
  """Returns the HTML page of a report.

  The page works without a network and asks for nothing: its own policy forbids any other script or
  resource.

  Args:
    report: The report.

  Returns:
    The text of the page. It is the same for equal reports.
  """
  style = (_FOLDER / "explain_page.css").read_text(encoding="utf-8")
  script = (_FOLDER / "explain_page.js").read_text(encoding="utf-8")
  order = explain_page_data.page_order(report)
  links = _NodeLinks(report, order)
  policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_digest(script)}'"
  return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_TITLE}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{_TITLE}</h1>
<p class="summary">{html.escape(explain_text.summary(report))}</p>
{_overview(report)}
<nav><a href="#advice">Advice</a> <a href="#stages">Stages</a> <a href="#reasons">Reasons</a> \
<a href="#graph">Graph</a></nav>
</header>
<main>
<section id="advice" class="advice">
<h2>What would let more run ahead</h2>
{_advice(report, links)}</section>
<section id="stages">
<h2>Stages, and what they carry to the step</h2>
{_stages(report, links)}{_unstaged_sources(report, links)}{_notes(report)}</section>
<section id="reasons">
<h2>Why nodes are in no stage</h2>
{_reasons(report, links)}</section>
<section id="graph">
<h2>The graph</h2>
<noscript><p>The tree and the search need JavaScript.</p></noscript>
<div class="search">
<input id="query" type="search" placeholder="Part of a name or an op" aria-label="Search the nodes">
<select id="side" aria-label="Show only"><option value="">on any side</option></select>
<span id="found" class="quiet" role="status"></span>
</div>
<ul id="results" hidden></ul>
<div id="tree"></div>
</section>
</main>
<script type="application/json" id="data">{explain_page_data.page_data(report, order)}</script>
<script>{script}</script>
</body>
</html>
"""


def _digest(script: str) -> str:
  return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


class _NodeLinks:
  """Links to nodes in the page's tree."""

  def __init__(self, report: explain_data.ReportData, order: Sequence[int]):
    self._position = {report.graph.nodes[node][0]: position for position, node in enumerate(order)}

  def link(self, name: str) -> str:
    """Returns a link to a node; only its name if the graph does not have it."""
    position = self._position.get(name)
    if position is None:
      return f"<code>{html.escape(name)}</code>"
    return f'<a class="node" href="#graph" data-node="{position}">{html.escape(name)}</a>'

  def tensor(self, name: str) -> str:
    """Returns the name of a tensor, with a link to its node."""
    node, _, output = name.rpartition(":")
    return f"{self.link(node)}:{html.escape(output)}"

  def outside(self, node: explain_data.OutsideNode) -> str:
    """Returns a node and its reason."""
    return f'{self.link(node.name)} <span class="op">{html.escape(node.op)}</span> {html.escape(node.why)}'


def _counts(report: explain_data.ReportData) -> list[tuple[str, str, int]]:
  """Returns for each side with nodes its class, its label and how many nodes it has."""
  sides = [side for _, _, side in report.graph.nodes]
  counts = [
      ("ahead", "ahead of the step", sum(side >= 0 for side in sides)),
      ("step", "in the step", sides.count(explain_graph.STEP)),
      ("once", "run once, before the first step", sides.count(explain_graph.ONCE)),
      ("shared", "depend on no source, so both use them", sides.count(explain_graph.SHARED)),
      ("control", "start and stop manual stages", sides.count(explain_graph.CONTROL)),
  ]
  return [entry for entry in counts if entry[2]]


def _overview(report: explain_data.ReportData) -> str:
  counts = _counts(report)
  if not counts:
    return ""
  total = sum(count for _, _, count in counts)
  parts = "".join(f'<span class="{name}" style="width:{100 * count / total:.3f}%"></span>' for name, _, count in counts)
  legend = "".join(
      f'<li><span class="key {name}"></span>{explain_text.counted(count, "node")} {label}</li>'
      for name, label, count in counts)
  return f'<div class="overview"><div class="bar">{parts}</div><ul class="legend">{legend}</ul></div>'


def _stages(report: explain_data.ReportData, links: _NodeLinks) -> str:
  if not report.stages:
    return "<p>There is no stage.</p>\n"
  in_step = report.graph.count(explain_graph.STEP)
  return "".join(
      _stage(stage, report.enabled, links, in_step, index < _MAX_OPEN_STAGES)
      for index, stage in enumerate(report.stages))


def _stage(stage: explain_data.Stage, is_on: bool, links: _NodeLinks, in_step: int, is_open: bool) -> str:
  ahead = explain_text.counted(len(stage.nodes), "node")
  carried = explain_text.counted(len(stage.boundary), "tensor")
  parts = [
      f'<details class="stage"{" open" if is_open else ""}>',
      f"<summary>{html.escape(explain_text.stage_title(stage, is_on))}</summary>",
      f'<div class="flow"><div class="box ahead"><b>{html.escape(stage.name)}</b>{ahead} ahead</div>',
      f'<div class="arrow">{carried}<br>{explain_text.total_size(stage.boundary)} a record</div>',
      f'<div class="box step"><b>the step</b>{explain_text.counted(in_step, "node")}</div></div>',
      "<h3>Records come from</h3>", _list(map(links.link, stage.sources), len(stage.sources)),
  ]
  for title, sentences in explain_text.what_it_reads(stage):
    parts += [f"<h3>{html.escape(title)}</h3>", _list(map(html.escape, sentences), len(sentences))]
  if stage.variables:
    steps = explain_text.counted(stage.stale_steps, "step")
    parts += [
        f"<h3>May miss the updates of the last {steps} in the variables</h3>",
        _list(map(links.link, stage.variables), len(stage.variables))
    ]
  parts += ["<h3>What a record carries to the step</h3>", _tensors(stage.boundary, links)]
  if stage.elements:
    parts += ["<h3>What a record also keeps of its sources, for fetches</h3>", _tensors(stage.elements, links)]
  title, lines = explain_text.where_it_waits(stage)
  parts += [f"<h3>{html.escape(title)}</h3>", _list(map(html.escape, lines), len(lines)) if lines else ""]
  parts += ["<h3>The first nodes of the step after it</h3>"]
  parts += [_grouped(
      stage.outside, lambda node: node.name, lambda _: 1,
      lambda nodes: explain_text.counted(len(nodes), "node"),
      lambda nodes: _list(map(links.outside, nodes), len(nodes)))]
  return "\n".join([*parts, "</details>\n"])


def _tensors(tensors: Sequence[explain_data.BoundaryTensor], links: _NodeLinks) -> str:
  return _grouped(
      tensors, lambda tensor: tensor.name, lambda tensor: tensor.min_bytes or 0,
      lambda group: f"{explain_text.counted(len(group), 'tensor')}, {explain_text.total_size(group)}",
      lambda group: _tensor_table(explain_text.largest_first(group), links))


def _grouped(
    items: Sequence[_Item], name_of: Callable[[_Item], str], size_of: Callable[[_Item], int],
    summary: Callable[[Sequence[_Item]], str], show: Callable[[Sequence[_Item]], str]) -> str:
  """Shows a list by name scope, the largest first, and what belongs to an optimizer at its end."""
  if len(items) <= _MAX_PLAIN:
    return show(items)

  def group(title: str, members: Sequence[_Item], content: str) -> str:
    return f'<details><summary>{title} <span class="count">{summary(members)}</span></summary>{content}</details>\n'

  def within(members: Sequence[_Item], above: str) -> str:
    groups = explain_groups.by_scope(members, name_of, size_of, _MAX_GROUPS, above)
    if len(members) <= _MAX_PLAIN or above and len(groups) == 1 and groups[0][0] == above:
      return show(members)
    shown = [
        group(_scope_title(scope, above), each, show(each) if scope == above else within(each, scope))
        for scope, each in groups[:_MAX_GROUPS]
    ]
    rest = [item for _, each in groups[_MAX_GROUPS:] for item in each]
    if rest:
      shown.append(group(f"{explain_text.counted(len(groups) - _MAX_GROUPS, 'more scope')}", rest, show(rest)))
    return "".join(shown)

  own, internal = explain_groups.without_optimizer(items, name_of)
  shown = within(own, "") if own else ""
  if internal:
    shown += group("gradients and the optimizer", internal, show(internal))
  return f'<div class="groups">{shown}</div>'


def _scope_title(scope: str, above: str) -> str:
  """Returns the title of a scope within another one; "" is what has no scope."""
  if scope == above:
    return "in no further scope" if above else "in no scope"
  return f"<code>{html.escape(scope[len(above) + 1 if above else 0:])}</code>"


def _tensor_table(tensors: Sequence[explain_data.BoundaryTensor], links: _NodeLinks) -> str:
  rows = (
      f"<td>{links.tensor(tensor.name)}</td><td>{html.escape(explain_text.type_and_shape(tensor))}</td>"
      f'<td class="number">{html.escape(explain_text.size(tensor))}</td>' for tensor in tensors)
  head = '<th scope="col">tensor</th><th scope="col">type and shape</th><th scope="col" class="number">size</th>'
  return _table(head, rows, len(tensors))


def _unstaged_sources(report: explain_data.ReportData, links: _NodeLinks) -> str:
  sources = report.unstaged_sources
  if not sources:
    return ""
  return "<h3>Sources of records that do not run ahead</h3>\n" + _list(map(links.outside, sources), len(sources))


def _notes(report: explain_data.ReportData) -> str:
  if not report.notes:
    return ""
  items = map(html.escape, report.notes)
  return "<h3>What sessions of the graph have warned of</h3>\n" + _list(items, len(report.notes))


def _reasons(report: explain_data.ReportData, links: _NodeLinks) -> str:
  once = report.graph.count(explain_graph.ONCE)
  parts = []
  if report.reasons:
    rows = (
        f'<td class="number" data-unit=" {"node" if reason.nodes == 1 else "nodes"}">{reason.nodes}</td>'
        f"<td>{links.outside(reason.example)}{_others(reason, links)}</td>" for reason in report.reasons)
    parts.append(
        _table('<th scope="col" class="number">nodes</th><th scope="col">for example</th>', rows, len(report.reasons)))
  else:
    parts.append("<p>No node is in the step alone.</p>\n")
  if once:
    parts.append(
        f"<p>{explain_text.counted(once, 'node')} of initialisers, datasets and tables have no such reason, because"
        " they do their work once, before the first step.</p>\n")
  return "".join(parts)


def _others(reason: explain_data.Reason, links: _NodeLinks) -> str:
  others = reason.about[1:]
  if not others:
    return ""
  names = _list(map(links.link, others), len(others))
  return f"<details><summary>{len(others)} more like this</summary>{names}</details>"


def _advice(report: explain_data.ReportData, links: _NodeLinks) -> str:
  if not report.advice:
    return "<p>No single change would: each node of the step is there for several reasons, or for its own.</p>\n"
  items = "".join(f"<li>{_one_advice(item, links)}</li>\n" for item in report.advice[:explain_text.MAX_ADVICE])
  return (
      f"<ol>\n{items}</ol>\n"
      '<p class="quiet">So many nodes are in the step because of one node alone. The nodes that several keep there are'
      " not counted.</p>\n")


def _one_advice(item: explain_data.Advice, links: _NodeLinks) -> str:
  nodes = f"<b>Up to {explain_text.counted(item.nodes, 'node')}</b>"
  if not item.others:
    return f"{nodes}: {links.outside(item.node)}. {html.escape(item.advice)}"
  alike = _list(map(links.link, item.others), len(item.others))
  return (
      f'{nodes}, because of {1 + len(item.others)} like {links.link(item.node.name)} <span class="op">'
      f"{html.escape(item.node.op)}</span>. {html.escape(item.advice)}"
      f"<details><summary>the other {len(item.others)}</summary>{alike}</details>")


def _table(head: str, rows: Iterable[str], count: int) -> str:
  body = "".join(f"<tr>{row}</tr>\n" for row in itertools.islice(rows, _MAX_ROWS))
  if not body:
    return "<p>None.</p>\n"
  table = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>\n'
  return table + _omitted(count)


def _list(items: Iterable[str], count: int) -> str:
  lines = "".join(f"<li>{item}</li>\n" for item in itertools.islice(items, _MAX_ROWS))
  return f"<ul>\n{lines}</ul>\n{_omitted(count)}" if lines else "<p>None.</p>\n"


def _omitted(count: int) -> str:
  return f'<p class="quiet">and {count - _MAX_ROWS} more</p>\n' if count > _MAX_ROWS else ""
