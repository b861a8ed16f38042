# SPDX-License-Identifier: Apache-2.0
"""Runs the Python examples of a page."""

import contextlib
import io
import pathlib
import re
import xml.etree.ElementTree

import tensorflow as tf

ROOT = pathlib.Path(__file__).parent.parent
DOCS = ROOT / "docs"

# An example, and the output that the page shows for it.
_EXAMPLE = re.compile(r"^```python\n(.*?)^```$(?:\n\n(?:prints|输出)\n\n^```\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)


def pages() -> list[str]:
  """The paths of the pages that have examples, from the repository's root."""
  paths = (path.relative_to(ROOT).as_posix() for path in (*DOCS.rglob("*.md"), ROOT / "modelzoo/README.md"))
  return sorted(path for path in paths if examples(path))


def examples(page: str) -> list[tuple[str, str]]:
  """The examples of a page, each with the output that the page shows; the output is empty where it shows none."""
  return _EXAMPLE.findall((ROOT / page).read_text(encoding="utf-8"))


def run(code: str, names: str = "") -> str:
  """Runs an example in a new graph.

  Args:
    code: The example.
    names: Code that runs first, in the same graph: it defines what the page leaves to the reader's program.

  Returns:
    What the example has printed.
  """
  output = io.StringIO()
  with tf.Graph().as_default(), contextlib.redirect_stdout(output):
    scope = {"__name__": "__main__"}
    for part in (names, code):
      exec(compile(part, "example", "exec"), scope)
  tf.compat.v1.keras.backend.clear_session()
  return output.getvalue()


def svg_texts(path: str | pathlib.Path) -> set[str]:
  """The texts of a picture."""
  return {text.text for text in xml.etree.ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")}
