# SPDX-License-Identifier: Apache-2.0
"""The graph of a report as the data of its HTML page."""

import json
import os
from typing import Any

from tensorflow_staging.python.explain import explain_data
from tensorflow_staging.python.explain import explain_groups


def page_order(report: explain_data.ReportData) -> list[int]:
  """Returns the indices of the nodes in the order of the page: by scope, and numbers in names by value."""
  nodes = report.graph.nodes
  return sorted(range(len(nodes)), key=lambda node: explain_groups.by_number(nodes[node][0]))


def page_data(report: explain_data.ReportData, order: list[int]) -> str:
  """Returns the graph of a report in JSON, which is safe within a script element of HTML.

  The names are sorted, so each is written as how many characters it shares with the one before, and
  its rest: a tenth of the size for the long names of large graphs.

  Args:
    report: The report.
    order: The indices of the nodes in the order of the page.

  Returns:
    An object with the names of `stages`, the `ops` and the `whys`, and for each node of `order` its
    name (`shared` and `rest`), the index of its `op`, its `side` and the index of its `why`.
  """
  nodes = [report.graph.nodes[node] for node in order]
  ops: dict[str, int] = {}
  data: dict[str, list[Any]] = {"shared": [], "rest": [], "op": []}
  previous = ""
  for name, op, _ in nodes:
    shared = len(os.path.commonprefix([previous, name]))
    # JavaScript counts in UTF-16, so the shared part must be ASCII.
    shared = shared if name[:shared].isascii() else 0
    data["shared"].append(shared)
    data["rest"].append(name[shared:])
    data["op"].append(ops.setdefault(op, len(ops)))
    previous = name
  data["side"] = [side for _, _, side in nodes]
  data["why"] = [report.graph.why_of[node] for node in order]
  data["ops"] = list(ops)
  data["whys"] = [why.text for why in report.graph.whys]
  data["stages"] = [stage.name for stage in report.stages]
  text = json.dumps(data, separators=(",", ":"))
  # These could end the script element or begin a comment.
  return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")

