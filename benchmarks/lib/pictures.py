# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of the benchmarks as SVG: bars, with the spread of their rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lib import svg

_LABELS = 172
_BARS = 192
_BAR = 14
_LINE = 16
_GAP = 6
_LABEL_CHARACTERS = 22
_TITLE_CHARACTERS = 56
_COLOURS = ("#3d7fb8", "#e8a33d", "#5a9e5f", "#b0568f", "#8a8a8a", "#c65d4a")


class Bar(NamedTuple):
  """A bar with a line for its spread."""

  name: str
  value: float
  low: float
  high: float


class Group(NamedTuple):
  """Bars under one heading; empty if there is none."""

  heading: str
  bars: Sequence[Bar]


def bars(title: str, groups: Sequence[Group], mark: float | None = None, form: str = "{:.2f}") -> str:
  """Returns a picture of horizontal bars, all on one scale that begins at 0.

  Args:
    title: What the bars show, with the unit.
    groups: The bars. Those of the same name have the same colour.
    mark: Where to draw a vertical line, if anywhere.
    form: The format of the values.
  """
  all_bars = [bar for group in groups for bar in group.bars]
  colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(dict.fromkeys(bar.name for bar in all_bars))}
  scale = _BARS / max(*(bar.high for bar in all_bars), *(bar.value for bar in all_bars), mark or 0, 1e-9)
  texts, count = svg.lines(title, 10, 22, _TITLE_CHARACTERS, 'font-weight="bold"')
  top = y = 22 + _LINE * count - 4
  shapes: list[str] = []
  for group in groups:
    if group.heading:
      heading, count = svg.lines(group.heading, 10, y + 16, _TITLE_CHARACTERS, 'font-weight="bold"')
      texts += heading
      y += 8 + _LINE * count
    for bar in group.bars:
      label, count = svg.lines(bar.name, _LABELS - 8, y + 12, _LABEL_CHARACTERS, 'text-anchor="end"')
      texts += label
      height = _LINE * count
      middle = y + height / 2
      low, high = (_LABELS + scale * value for value in (bar.low, bar.high))
      shapes += [
          f'<rect x="{_LABELS}" y="{middle - _BAR / 2:g}" width="{scale * bar.value:.1f}" height="{_BAR}"'
          f' fill="{colours[bar.name]}"/>',
          f'<path class="line" d="M{low:.1f} {middle:g}H{high:.1f}" stroke-width="2"/>',
      ]
      texts.append(
          f'<text x="{_LABELS + scale * max(bar.high, bar.value) + 6:.1f}" y="{middle + 5:g}">'
          f"{form.format(bar.value)}</text>")
      y += height + _GAP
  if mark is not None:
    x = _LABELS + scale * mark
    shapes.append(f'<path class="line" d="M{x:.1f} {top}V{y}" stroke-dasharray="4 3"/>')
  return svg.document(title, y + 8, [*shapes, *texts])
