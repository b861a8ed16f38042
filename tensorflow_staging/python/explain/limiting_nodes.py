# SPDX-License-Identifier: Apache-2.0
"""Finds the nodes whose reasons keep most other nodes in the step."""

import collections
import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator

from tensorflow_staging.python.explain import explain_data
from tensorflow_staging.python.explain import explain_graph
from tensorflow_staging.python.explain import explain_groups

# What keeps a node in the step: nothing, several nodes, or the index of the one node.
_NOTHING = -1
_SEVERAL = -2

# So many pieces of equal advice become one.
_MANY = 3


def held_back(graph: explain_graph.StagedGraph, unstaged_sources: Iterable[str]) -> dict[int, int]:
  """Counts the nodes that are in the step because of one node alone.

  Such nodes depend on a source, lead to a node that would stay in the step, and would run ahead if
  the reason of the one node no longer held. If that node depends on a source, it counts, too.

  The result is an upper bound: SmartStage may have further reasons, which it examines only for nodes
  that could run ahead. Takes time linear in the nodes and edges.

  Args:
    graph: The graph.
    unstaged_sources: The names of the sources that are in no stage.

  Returns:
    The number of nodes by the index of the node that keeps them.
  """
  users = [[] for _ in graph.nodes]
  for src, _, dst in graph.edges:
    users[src].append(dst)
  keeps = _keepers(graph, users)
  fed = _with_records(graph, users, frozenset(unstaged_sources))
  leads = _leading_to_step(graph, users, keeps)
  counts = collections.Counter(
      keeps[node] for node in range(len(graph.nodes)) if keeps[node] >= 0 and fed[node] and leads[node])
  return dict(counts)


def on_records_alone(graph: explain_graph.StagedGraph, unstaged_sources: Iterable[str]) -> set[str]:
  """Returns the names of the nodes outside all stages that depend on a source, and on no node that belongs to the step.

  With the staged ones, these do the work before the boundary. They stay in the step for other reasons, as where several
  sources meet. What is computed only if a run asks for it does not count.
  """
  users = [[] for _ in graph.nodes]
  for src, _, dst in graph.edges:
    users[src].append(dst)
  fed = _with_records(graph, users, frozenset(unstaged_sources))
  in_step = [node in graph.step_only for node in range(len(graph.nodes))]
  found = list(graph.step_only)
  while found:
    for user in users[found.pop()]:
      if not in_step[user]:
        in_step[user] = True
        found.append(user)
  return {
      name for node, (name, _, side) in enumerate(graph.nodes)
      if side == explain_graph.STEP and fed[node] and not in_step[node]
      and graph.whys[graph.why_of[node]].about != explain_graph.NOTHING
  }


def advice(
    graph: explain_graph.StagedGraph,
    unstaged_sources: Iterable[str]) -> tuple[explain_data.Advice, ...]:
  """Returns advice about the nodes of `held_back`, one piece for many with the same op and the same remedy.

  That which moves most nodes is the first.
  """
  about = {why.about: why for why in graph.whys if why.about >= 0}
  found = []
  for node, count in held_back(graph, unstaged_sources).items():
    name, op, _ = graph.nodes[node]
    own = graph.whys[graph.why_of[node]] if graph.why_of[node] >= 0 else about[node]
    # What keeps the others may be another reason: a node that saves an iterator's position also has a side effect.
    others = about.get(node, own)
    # A text for the others names the node itself.
    why = "" if own.text.endswith(f"'{name}' ({op})") else own.text
    found.append(explain_data.Advice(explain_data.OutsideNode(name, op, why), count, others.advice))
  found.sort(key=_most_nodes_first)
  alike: dict[tuple[str, str], list[explain_data.Advice]] = {}
  for item in found:
    alike.setdefault((item.node.op, item.advice), []).append(item)
  merged = []
  for items in alike.values():
    merged += [_merged(items)] if len(items) >= _MANY else items
  return tuple(sorted(merged, key=_most_nodes_first))


def _merged(items: list[explain_data.Advice]) -> explain_data.Advice:
  return dataclasses.replace(
      items[0], nodes=sum(item.nodes for item in items), others=tuple(item.node.name for item in items[1:]))


def _most_nodes_first(item: explain_data.Advice) -> tuple:
  return -item.nodes, explain_groups.by_number(item.node.name)


def _own_keepers(graph: explain_graph.StagedGraph, node: int) -> Iterator[int]:
  """Yields the nodes whose reasons keep `node` in the step, apart from those that its inputs have too."""
  if node in graph.step_only:
    yield node
  about = graph.whys[graph.why_of[node]].about
  if about == explain_graph.ITSELF:
    yield node
  elif about >= 0:
    yield about


def _keepers(graph: explain_graph.StagedGraph, users: list[list[int]]) -> list[int]:
  """Returns what keeps each node in the step. A node of the step passes what keeps it on to its users."""
  keeps = [_NOTHING] * len(graph.nodes)

  def add(node: int, keeper: int) -> bool:
    if keeper == _NOTHING or keeps[node] in (keeper, _SEVERAL):
      return False
    keeps[node] = keeper if keeps[node] == _NOTHING else _SEVERAL
    return True

  in_step = [side == explain_graph.STEP for _, _, side in graph.nodes]
  for node, step in enumerate(in_step):
    if step:
      for keeper in _own_keepers(graph, node):
        add(node, keeper)
  changed = [node for node, keeper in enumerate(keeps) if keeper != _NOTHING]
  while changed:
    node = changed.pop()
    changed += [user for user in users[node] if in_step[user] and add(user, keeps[node])]
  return keeps


def _with_records(
    graph: explain_graph.StagedGraph, users: list[list[int]], unstaged_sources: frozenset[str]) -> list[bool]:
  """Returns whether each node depends on a source."""
  fed = [side >= 0 or name in unstaged_sources for name, _, side in graph.nodes]
  found = [node for node, is_fed in enumerate(fed) if is_fed]
  while found:
    for user in users[found.pop()]:
      if not fed[user]:
        fed[user] = True
        found.append(user)
  return fed


def _leading_to_step(
    graph: explain_graph.StagedGraph, users: list[list[int]], keeps: list[int]) -> list[bool]:
  """Returns whether each node leads to one that stays in the step if what keeps the first one no longer does."""
  inputs = [[] for _ in graph.nodes]
  leads = [False] * len(graph.nodes)
  found = []
  for node, its_users in enumerate(users):
    for user in its_users:
      if graph.nodes[user][2] != explain_graph.STEP:
        continue
      if keeps[user] == keeps[node]:
        inputs[user].append(node)
      elif not leads[node]:
        leads[node] = True
        found.append(node)
  while found:
    for node in inputs[found.pop()]:
      if not leads[node]:
        leads[node] = True
        found.append(node)
  return leads
