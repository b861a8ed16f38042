# SPDX-License-Identifier: Apache-2.0
"""The frame of a picture: as wide as a phone, and readable on a light and on a dark page."""

from __future__ import annotations

import html
from collections.abc import Sequence

# A phone shows a picture of this width at nearly its size.
WIDTH = 420
FONT_SIZE = 13

# A class is named after what it colours. Shapes of the others' colours look well on both papers.
_STYLE = """<style>
.paper{fill:#ffffff}.ink{fill:#24292f}.line{stroke:#57606a}.grid{stroke:#d0d7de}.box{fill:#eef3fa}.gain{fill:#e3f3e3}
@media(prefers-color-scheme:dark){
.paper{fill:#1c2128}.ink{fill:#e6edf3}.line{stroke:#adbac7}.grid{stroke:#444c56}.box{fill:#22324a}.gain{fill:#1e3a26}
}
</style>"""


def document(title: str, height: int, shapes: Sequence[str], width: int = WIDTH) -> str:
  """Returns a picture with a rounded paper of its own.

  Args:
    title: What it shows, for readers that cannot see it.
    height: The height of the picture.
    shapes: What is on the paper. Texts have the colour of ink unless they say otherwise.
    width: The width of the picture.
  """
  return "\n".join((
      f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
      f' font-family="sans-serif" font-size="{FONT_SIZE}">',
      f"<title>{html.escape(title)}</title>",
      _STYLE,
      f'<rect class="paper" width="{width}" height="{height}" rx="8"/>',
      '<g class="ink">',
      *shapes,
      "</g>",
      "</svg>\n",
  ))


def text(x: float, y: float, content: str, attributes: str = "") -> str:
  """Returns a line of text whose base is at `y`."""
  return f'<text x="{x:g}" y="{y:g}"{attributes and " " + attributes}>{html.escape(content)}</text>'
