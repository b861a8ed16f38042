# SPDX-License-Identifier: Apache-2.0
"""Draws curves over time as SVG, one below the other."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from lib import svg

_LEFT = 70
_WIDTH = 330
_HEIGHT = 90
_GAP = 44
_TITLE = 34
_COLOURS = ("#3d7fb8", "#e8a33d", "#5a9e5f")


class Curve(NamedTuple):
  """A curve with a scale of its own, which begins at 0."""

  name: str
  values: Sequence[float]


def curves(title: str, times: Sequence[float], time_unit: str, all_curves: Sequence[Curve]) -> str:
  """Returns a picture of curves.

  Args:
    title: What the picture shows.
    times: The time of each value, of which the first is the least and the last is the greatest.
    time_unit: The unit of the times.
    all_curves: The curves, with as many values as there are times.
  """
  scale_x = _WIDTH / max(times[-1] - times[0], 1e-9)
  shapes, texts = [], []
  for i, curve in enumerate(all_curves):
    top = _TITLE + i * (_HEIGHT + _GAP) + 24
    bottom = top + _HEIGHT
    greatest = max(*curve.values, 1e-9)
    points = " ".join(
        f"{_LEFT + (time - times[0]) * scale_x:.1f},{bottom - value / greatest * _HEIGHT:.1f}"
        for time, value in zip(times, curve.values, strict=True))
    shapes += [
        f'<path class="line" d="M{_LEFT} {top}V{bottom}H{_LEFT + _WIDTH}" fill="none"/>',
        f'<polyline points="{points}" stroke="{_COLOURS[i % len(_COLOURS)]}" stroke-width="1.5" fill="none"/>',
    ]
    texts += [
        f'<text x="{_LEFT}" y="{top - 8}" font-weight="bold">{html.escape(curve.name)}</text>',
        f'<text x="{_LEFT - 6}" y="{top + 8}" text-anchor="end">{greatest:,.0f}</text>',
        f'<text x="{_LEFT - 6}" y="{bottom}" text-anchor="end">0</text>',
    ]
  height = _TITLE + len(all_curves) * (_HEIGHT + _GAP) + 20
  texts += [
      f'<text x="{_LEFT}" y="{height - 8}">{times[0]:.0f}</text>',
      f'<text x="{_LEFT + _WIDTH}" y="{height - 8}" text-anchor="end">{times[-1]:,.1f} {html.escape(time_unit)}</text>',
  ]
  heading = f'<text x="10" y="22" font-weight="bold">{html.escape(title)}</text>'
  return svg.document(title, height, [heading, *shapes, *texts])
