# SPDX-License-Identifier: Apache-2.0
"""Functions of the eager context with the functions that they call."""

from typing import Any

from tensorflow.core.framework import function_pb2
from tensorflow.python.eager import context


def library_of(function: function_pb2.FunctionDef) -> function_pb2.FunctionDefLibrary:
  """Returns a function with all functions that it calls."""
  library, known, to_visit = function_pb2.FunctionDefLibrary(), {function.signature.name}, [function]
  while to_visit:
    at = to_visit.pop()
    library.function.add().CopyFrom(at)
    for node in at.node_def:
      for name in called_by(node):
        if name not in known:
          known.add(name)
          to_visit.append(context.context().get_function_def(name))
  return library


def called_by(node: Any) -> list[str]:
  """Returns the names of the functions that a node calls."""
  called = []
  for _, attr in sorted(node.attr.items()):
    kind = attr.WhichOneof("value")
    if kind == "func":
      called.append(attr.func.name)
    elif kind == "list":
      called.extend(function.name for function in attr.list.func)
  return [name for name in called if name]
