# SPDX-License-Identifier: Apache-2.0
"""Functions whose nodes are all on the host, whatever devices they had."""

from tensorflow.core.framework import function_pb2
from tensorflow.python.framework import device

from tensorflow_staging.python.ahead import function_library


def any_elsewhere(name: str, by_name: dict[str, function_pb2.FunctionDef]) -> bool:
  """Returns whether a function, or one that it calls, asks for another device than a CPU."""
  return any(
      node.device and device.DeviceSpec.from_string(node.device).device_type not in (None, "CPU")
      for called in _reachable(name, by_name) for node in by_name[called].node_def)


def on_host(
    name: str, by_name: dict[str, function_pb2.FunctionDef], prefix: str,
    host: str) -> dict[str, function_pb2.FunctionDef]:
  """Returns copies of a function and of those that it calls, with all nodes on the host.

  Args:
    name: The name of the function.
    by_name: All of them by their names.
    prefix: What the names of the copies begin with.
    host: The host's device.

  Returns:
    The copies by the names of the functions.
  """
  copies = {}
  for called in _reachable(name, by_name):
    copy = copies[called] = function_pb2.FunctionDef()
    copy.CopyFrom(by_name[called])
    copy.signature.name = prefix + called
    for node in copy.node_def:
      node.device = host
      for attr in node.attr.values():
        kind = attr.WhichOneof("value")
        for function in (attr.func,) if kind == "func" else attr.list.func if kind == "list" else ():
          function.name = function.name and prefix + function.name
  return copies


def _reachable(name: str, by_name: dict[str, function_pb2.FunctionDef]) -> list[str]:
  """Returns the names of a function and of all that it calls."""
  found = [name]
  for at in found:
    for node in by_name[at].node_def:
      for called in function_library.called_by(node):
        if called not in found:
          found.append(called)
  return found
