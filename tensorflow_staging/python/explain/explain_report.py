# SPDX-License-Identifier: Apache-2.0
"""The report that `tf.staging.explain` returns."""

import dataclasses
import html
import os
import pathlib
from typing import Union

from tensorflow_staging.python.explain import explain_data
from tensorflow_staging.python.explain import explain_page
from tensorflow_staging.python.explain import explain_picture
from tensorflow_staging.python.explain import explain_text


@dataclasses.dataclass(frozen=True)
class StageReport(explain_data.ReportData):
  """Which part of a graph runs ahead of the step; `str()` of it is readable text.

  Attributes:
    enabled: Whether SmartStage is on in the configuration. If it is off, the other fields describe
      what SmartStage would do if it were on, unless `async_embedding` is true.
    async_embedding: Whether lookups in embedding variables run ahead (`do_async_embedding`).
    num_nodes: The number of nodes of the graph.
    stages: All stages, sorted by name.
    unstaged_sources: The sources that are in no stage, each with the reason.
    reasons: The reasons of all nodes that are in no stage and do not run once, the most frequent
      reason first.
    advice: The nodes whose reasons keep others in the step, that for most others first.
    graph: The graph.
    notes: What sessions of the graph have warned of when their stages started, such as a stage that was
      added too late to carry what steps use beside it.
  """

  def __str__(self) -> str:
    return explain_text.text(self)

  def __repr__(self) -> str:
    """Returns the first sentences alone: what a debugger or an error shows."""
    return f"<{type(self).__name__}: {explain_text.summary(self)}>"

  def _repr_html_(self) -> str:
    """Returns what a notebook shows: the readable text, which does not grow with the graph."""
    summary, _, rest = str(self).partition("\n")
    return f"<p><b>{html.escape(summary)}</b></p><pre>{html.escape(rest.strip())}</pre>"

  def to_html(self) -> str:
    """Writes the report as one page for a browser, with a tree of the graph's name scopes and a search.

    Returns:
      The text of the page, which needs no other file and no network. The tree and the search need
      JavaScript, the rest does not.
    """
    return explain_page.page(self)

  def save_html(self, path: Union[str, os.PathLike]) -> None:
    """Writes the page of `to_html` into a file.

    Args:
      path: The HTML file, which is overwritten if it exists.

    Raises:
      OSError: If the file cannot be written.
    """
    pathlib.Path(path).write_text(self.to_html(), encoding="utf-8")

  def to_dot(self) -> str:
    """Draws the graph in Graphviz's language, with the stages apart from the step.

    Groups the nodes of a large graph by name scope, so that the picture stays readable.

    Returns:
      The source text of the picture.
    """
    return explain_picture.dot(self)

  def save_svg(self, path: Union[str, os.PathLike]) -> None:
    """Draws the graph into a file, with Graphviz's program `dot`.

    Args:
      path: The SVG file, which is overwritten if it exists.

    Raises:
      RuntimeError: If `dot` is not installed, fails, or takes longer than a minute.
      OSError: If the file cannot be written.
    """
    explain_picture.save_svg(self.to_dot(), path)
