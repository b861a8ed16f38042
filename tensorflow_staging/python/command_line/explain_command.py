# SPDX-License-Identifier: Apache-2.0
"""`python -m tensorflow.staging explain`: reports what would run ahead of the step in a graph."""

import argparse
import pathlib
from collections.abc import Callable

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.framework import errors
from tensorflow.python.framework import ops

from tensorflow_staging.python.command_line import graph_file
from tensorflow_staging.python.command_line import user_error
from tensorflow_staging.python.explain import explain
from tensorflow_staging.python.explain import explain_report
from tensorflow_staging.python.smart_stage import smart_stage_options
from tensorflow_staging.python.smart_stage import target_nodes

_MAX_INT32 = 2**31 - 1

_DESCRIPTION = """\
Prints which nodes of a graph SmartStage runs ahead of the training step, and why the others stay in it: what
tf.staging.explain(graph, config) returns."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the arguments of the command to its parser."""
  parser.description = _DESCRIPTION
  parser.add_argument(
      "graph", type=pathlib.Path, nargs="+", metavar="GRAPH",
      help="a MetaGraph (.meta) or a GraphDef (.pb, .pbtxt); several give a report each, under the name of the file")
  parser.add_argument("--html", type=pathlib.Path, metavar="FILE", help="also write the report as a page for a browser")
  parser.add_argument("--svg", type=pathlib.Path, metavar="FILE", help="also draw a picture; needs Graphviz")
  parser.add_argument(
      "--target_nodes", type=_names, default=[], metavar="NAMES",
      help="nodes that stay in the step, as for tf.train.mark_target_node: names with commas between them")
  parser.add_argument("--name", help="the name of the stages, as in tf.SmartStageOptions")
  parser.add_argument(
      "--no_carry_elements", action="store_true", help="carry_elements=False, as in tf.SmartStageOptions")
  parser.add_argument(
      "--async_embedding", action="store_true",
      help="let lookups in embedding variables run ahead (do_async_embedding)")
  parser.add_argument(
      "--async_embedding_capacity", type=_positive, default=1, metavar="N",
      help="async_embedding_options.capacity; the default is 1")
  parser.add_argument(
      "--async_embedding_threads", type=_positive, default=1, metavar="N",
      help="async_embedding_options.threads_num; the default is 1")
  parser.add_argument(
      "--op_library", type=pathlib.Path, action="append", default=[], metavar="FILE",
      help="a library of ops that the graph needs; may be given several times")


def run(arguments: argparse.Namespace) -> int:
  """Runs the command.

  Args:
    arguments: The parsed arguments.

  Returns:
    0, the exit status.

  Raises:
    UserError: If an argument cannot be used.
  """
  _check_outputs(arguments)
  for library in arguments.op_library:
    graph_file.load_op_library(library)
  config = _config(arguments)
  # All graphs are read before the first report, so that a wrong name does not come after pages of text.
  graphs = [graph_file.read(path) for path in arguments.graph]
  for index, (path, graph) in enumerate(zip(arguments.graph, graphs)):
    report = _report(graph, config, arguments.target_nodes)
    for output, save in ((arguments.html, report.save_html), (arguments.svg, report.save_svg)):
      if output is not None:
        _save(output, save)
    if len(graphs) > 1:
      print(f"{chr(10) * bool(index)}== {path} ==")
    print(report)
  return 0


def _report(graph: ops.Graph, config: config_pb2.ConfigProto, target_nodes: list[str]) -> explain_report.StageReport:
  _mark(graph, target_nodes)
  try:
    return explain.explain(graph, config)
  except errors.InvalidArgumentError as error:
    raise user_error.UserError(error.message) from error


def _save(path: pathlib.Path, save: Callable[[pathlib.Path], None]) -> None:
  try:
    save(path)
  except OSError as error:
    raise user_error.UserError(f"{str(path)!r} cannot be written: {error.strerror}.") from error
  except RuntimeError as error:
    raise user_error.UserError(str(error)) from error


def _check_outputs(arguments: argparse.Namespace) -> None:
  """Raises UserError if a report would replace a graph, or another report."""
  taken = [("the graph", path) for path in arguments.graph]
  for flag, path in (("--html", arguments.html), ("--svg", arguments.svg)):
    if path is None:
      continue
    if len(arguments.graph) > 1:
      raise user_error.UserError(f"{flag} is for one graph, got {len(arguments.graph)}: run the command for each.")
    for what, other in taken:
      if path.resolve() == other.resolve():
        raise user_error.UserError(f"{flag}: {str(path)!r} is the file of {what}; allowed is any other one.")
    taken.append((flag, path))


def _names(text: str) -> list[str]:
  return [name for name in text.split(",") if name]


def _positive(text: str) -> int:
  if not text.isdecimal() or not 1 <= int(text) <= _MAX_INT32:
    raise argparse.ArgumentTypeError(f"{text!r} must be an integer from 1 to {_MAX_INT32}.")
  return int(text)


def _config(arguments: argparse.Namespace) -> config_pb2.ConfigProto:
  config = config_pb2.ConfigProto()
  options = config.graph_options.optimizer_options
  options.do_smart_stage = True
  try:
    options.smart_stage_options.CopyFrom(
        smart_stage_options.SmartStageOptions(
            name=arguments.name, carry_elements=not arguments.no_carry_elements))
  except ValueError as error:
    raise user_error.UserError(f"--name: {error}") from error
  if arguments.async_embedding:
    options.do_async_embedding = True
    options.async_embedding_options.capacity = arguments.async_embedding_capacity
    options.async_embedding_options.threads_num = arguments.async_embedding_threads
  return config


def _mark(graph: ops.Graph, names: list[str]) -> None:
  for name in names:
    try:
      node = graph.as_graph_element(name, allow_tensor=True, allow_operation=True)
    except (KeyError, ValueError) as error:
      raise user_error.UserError(
          f"--target_nodes: the graph has no node {name!r}; allowed are names of its nodes.") from error
    target_nodes.mark_target_node(node)
