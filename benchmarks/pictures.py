# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of the benchmarks as SVG: bars, with the spread of their rounds."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

_LABELS = 300
_WIDTH = 420
_VALUES = 60
_ROW = 20
_TITLE = 34
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
  scale = _WIDTH / max(*(bar.high for bar in all_bars), mark or 0, 1e-9)
  shapes, texts, y = [], [], _TITLE
  for group in groups:
    if group.heading:
      y += _ROW // 3
      texts.append(f'<text x="10" y="{y + 14}" font-weight="bold">{html.escape(group.heading)}</text>')
      y += _ROW
    for bar in group.bars:
      low, high = (_LABELS + scale * value for value in (bar.low, bar.high))
      middle = y + _ROW / 2
      shapes += [
          f'<rect x="{_LABELS}" y="{y + 2}" width="{scale * bar.value:.1f}" height="{_ROW - 4}"'
          f' fill="{colours[bar.name]}"/>',
          f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="#333333" stroke-width="2"/>',
      ]
      texts += [
          f'<text x="{_LABELS - 8}" y="{y + 14}" text-anchor="end">{html.escape(bar.name)}</text>',
          f'<text x="{_LABELS + scale * max(bar.high, bar.value) + 6:.1f}" y="{y + 14}" paint-order="stroke"'
          f' stroke="#ffffff" stroke-width="3">{form.format(bar.value)}</text>',
      ]
      y += _ROW
  if mark is not None:
    x = _LABELS + scale * mark
    shapes.append(f'<path d="M{x:.1f} {_TITLE}V{y}" stroke="#333333" stroke-dasharray="4 3"/>')
  width, height = _LABELS + _WIDTH + _VALUES, y + 10
  return "\n".join((
      f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
      ' font-family="sans-serif" font-size="13">',
      f"<title>{html.escape(title)}</title>",
      f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
      '<g fill="#333333">',
      f'<text x="10" y="22" font-weight="bold">{html.escape(title)}</text>',
      *shapes,
      *texts,
      "</g>",
      "</svg>\n",
  ))
