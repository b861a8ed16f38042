# SPDX-License-Identifier: Apache-2.0
"""Reads a graph from a file."""

import pathlib

from google.protobuf import message
from google.protobuf import text_format
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.python.framework import errors
from tensorflow.python.framework import importer
from tensorflow.python.framework import load_library
from tensorflow.python.framework import ops

from tensorflow_staging.python.command_line import user_error

_ALLOWED = "allowed are a MetaGraph (.meta) and a GraphDef (.pb, or .pbtxt for text)"


def read(path: pathlib.Path) -> ops.Graph:
  """Reads a graph.

  Args:
    path: A MetaGraph as `tf.compat.v1.train.Saver` writes it (.meta), or a GraphDef in binary (.pb)
      or text format (.pbtxt).

  Returns:
    The graph.

  Raises:
    UserError: If the file cannot be read, holds no graph, or its graph has an op that is not loaded.
  """
  if path.suffix not in (".meta", ".pb", ".pbtxt"):
    raise user_error.UserError(f"{str(path)!r} has the suffix {path.suffix!r}; {_ALLOWED}.")
  try:
    content = path.read_bytes()
  except OSError as error:
    raise user_error.UserError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
  definition = _parse(path, content)
  graph = ops.Graph()
  with graph.as_default():
    try:
      importer.import_graph_def(definition, name="")
    except (ValueError, errors.OpError) as error:
      reason = " ".join(str(error).split()).rstrip(".")
      raise user_error.UserError(
          f"{str(path)!r} is no graph that can be loaded: {reason}. Ops of libraries need --op_library.") from error
  return graph


def load_op_library(path: pathlib.Path) -> None:
  """Loads a library of ops, as `tf.load_op_library` does.

  Args:
    path: The file. A name without a folder is that of a file in the current folder.

  Raises:
    UserError: If the library cannot be loaded.
  """
  try:
    # A name without a folder would be looked up in the folders of the loader alone.
    load_library.load_op_library(str(path.absolute()))
  except (errors.OpError, RuntimeError) as error:
    raise user_error.UserError(f"--op_library: {str(path)!r} cannot be loaded: {error}.") from error


def _parse(path: pathlib.Path, content: bytes) -> graph_pb2.GraphDef:
  found = meta_graph_pb2.MetaGraphDef() if path.suffix == ".meta" else graph_pb2.GraphDef()
  try:
    if path.suffix == ".pbtxt":
      text_format.Parse(content.decode(), found)
    else:
      found.ParseFromString(content)
  except (message.DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
    raise user_error.UserError(f"{str(path)!r} holds no graph in the format of its suffix; {_ALLOWED}.") from error
  definition = found.graph_def if path.suffix == ".meta" else found
  # Most messages parse as any other message, with fields that make no sense.
  if not definition.node or not all(node.name and node.op for node in definition.node):
    raise user_error.UserError(f"{str(path)!r} holds no node of a graph; {_ALLOWED}.")
  return definition
