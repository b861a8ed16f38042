# SPDX-License-Identifier: Apache-2.0
"""A hook of MkDocs that tells browsers where long names may break."""

import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure import pages as mkdocs_pages

_CELL = re.compile(r"<td[ >].*?</td>", re.DOTALL)
_CODE = re.compile(r"<code>([^<]*)</code>")
# A name may break after these, if a letter follows.
_BREAK = re.compile(r"(?<=[_.:,/=(])(?=\w)")


def on_post_page(output: str, page: mkdocs_pages.Page, config: MkDocsConfig) -> str:
  """Changes the finished HTML, which the search has already read."""
  del page, config
  return _CELL.sub(lambda cell: _CODE.sub(_breakable, cell[0]), output)


def _breakable(code: re.Match) -> str:
  # Not within an entity such as &amp;, which has none of these characters before a letter.
  return f"<code>{_BREAK.sub('<wbr>', code[1])}</code>"
