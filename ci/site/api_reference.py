# SPDX-License-Identifier: Apache-2.0
"""A hook of MkDocs that adds the API reference, written from the docstrings of the installed wheel."""

import dataclasses
import inspect
import re
import types
from collections.abc import Callable
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure import files as mkdocs_files

PATH = "docs/api.md"
_PACKAGE = "tensorflow_staging"

# The sections of a docstring, as the page calls them.
_SECTIONS = {
    "Args:": "Arguments",
    "Attributes:": "Attributes",
    "Returns:": "Returns",
    "Yields:": "Yields",
    "Raises:": "Errors",
}
# What a section of names begins an entry with: two blanks, a name, a colon.
_ENTRY = re.compile(r"^  (\*{0,2}[\w.]+): +(.*)$")

_INTRODUCTION = """# API reference

What this fork adds to TensorFlow, from the docstrings of the installed wheel, which `help(tf.staged)` shows as well.
The names are in TensorFlow 1's API and in TensorFlow 2's, in `tf.compat.v1` and in `tf.compat.v2`. The fields that the
fork adds to `tf.ConfigProto` and `tf.RunOptions` are described with [SmartStage](smart_stage.md#turning-it-on),
[thread pools](stage_thread_pools.md#configprotosession_stage_subgraph_thread_pool) and
[streams](gpu.md#several-streams-on-a-gpu).
"""


def on_files(files: mkdocs_files.Files, config: MkDocsConfig) -> mkdocs_files.Files:
  """Adds the page."""
  file = mkdocs_files.File.generated(config, PATH, content=page())
  file.dest_uri = "api.html"
  files.append(file)
  return files


def page() -> str:
  """Returns the reference in Markdown."""
  import tensorflow as tf

  return "\n".join([_INTRODUCTION, *(_entry(name, symbol) for name, symbol in sorted(_public(tf)))])


def _public(tf: types.ModuleType) -> Iterator[tuple[str, Callable]]:
  """The public symbols whose code is ours, with their names."""
  for prefix, module in (("tf", tf), ("tf.train", tf.train), ("tf.staging", tf.staging)):
    for name, symbol in vars(module).items():
      if not name.startswith("_") and getattr(symbol, "__module__", "").startswith(_PACKAGE):
        yield f"{prefix}.{name}", symbol


def _entry(name: str, symbol: Callable) -> str:
  anchor = re.sub(r"[^\w]", "", name.lower())
  parts = [f"## `{name}` {{#{anchor}}}", _signature(name, symbol), _markdown(symbol)]
  if inspect.isclass(symbol):
    parts.append(_markdown(symbol.__init__))
  result = _result_class(symbol)
  if result:
    parts += [f"### `{result.__name__}` {{#{anchor}-{result.__name__.lower()}}}", _markdown(result)]
  return "\n\n".join(part for part in parts if part) + "\n"


def _result_class(symbol: Callable) -> type | None:
  """The data class of ours that a function returns, alone or in a list, if there is one."""
  returned = inspect.signature(symbol).return_annotation
  for candidate in (returned, *getattr(returned, "__args__", ())):
    if dataclasses.is_dataclass(candidate) and candidate.__module__.startswith(_PACKAGE):
      return candidate
  return None


def _signature(name: str, symbol: Callable) -> str:
  """The call with its defaults, an argument a line; types are in the descriptions."""
  lines = []
  keyword_only = False
  for parameter in inspect.signature(symbol).parameters.values():
    if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
      keyword_only = True
      lines.append("*")
    if parameter.kind is parameter.VAR_POSITIONAL:
      keyword_only = True  # Arguments after it need no other mark.
      lines.append(f"*{parameter.name}")
      continue
    default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
    lines.append(parameter.name + default)
  arguments = "".join(f"\n    {line}," for line in lines)
  return f"```python\n{name}({arguments}{chr(10) if lines else ''})\n```"


def _markdown(documented: Callable) -> str:
  """A docstring in Google's style, with its sections as lists."""
  lines = []
  section = ""
  for line in (inspect.getdoc(documented) or "").splitlines():
    if line in _SECTIONS:
      section = line
      lines += [f"**{_SECTIONS[line]}**", ""]
    elif not section:
      lines.append(line)
    elif line and not line.startswith(" "):
      section = ""
      lines.append(line)
    elif entry := section not in ("Returns:", "Yields:") and _ENTRY.match(line):
      lines.append(f"* `{entry[1]}`: {entry[2]}")
    else:
      lines.append(line.strip() if section in ("Returns:", "Yields:") else "  " + line.strip())
  return "\n".join(lines).strip()
