# SPDX-License-Identifier: Apache-2.0
"""Formats a report of `tf.staging.explain` as readable text."""

import itertools
from collections.abc import Iterable
from collections.abc import Sequence

from tensorflow_staging.python.automatic import setting
from tensorflow_staging.python.explain import explain_data
from tensorflow_staging.python.explain import explain_graph
from tensorflow_staging.python.explain import explain_groups
from tensorflow_staging.python.explain import limiting_nodes
from tensorflow_staging.python.explain import record_parts

# The maximum number of items that a list shows, and of names within one line.
_MAX_ITEMS = 20
_MAX_NAMES = 3

_ONLY_ITS_SESSION = (
    "Where a record waits for the step, only the session decides: the graph names devices that this process lacks, or"
    " the GPUs have several streams")

# How many pieces of advice a report gives.
MAX_ADVICE = 5


def text(report: explain_data.ReportData) -> str:
  """Formats a report.

  Args:
    report: The report.

  Returns:
    The text, without a newline at its end. It shows at most 20 items of each list, so it stays short
    for a graph of any size.
  """
  lines = [summary(report)]
  if report.advice:
    lines += ["", "What would let more run ahead:"]
    lines += [f"    {advice(item)}" for item in report.advice[:MAX_ADVICE]]
  for stage in report.stages[:_MAX_ITEMS]:
    lines += ["", *_stage(stage, report.enabled)]
  if len(report.stages) > _MAX_ITEMS:
    lines += ["", f"... and {len(report.stages) - _MAX_ITEMS} more stages"]
  if report.unstaged_sources:
    lines += ["", "Sources of records that do not run ahead:"]
    lines += _listed(map(str, report.unstaged_sources), len(report.unstaged_sources))
  if report.notes:
    lines += ["", "What sessions of the graph have warned of:"]
    lines += _listed(report.notes, len(report.notes))
  lines += ["", *_reasons(report)]
  if once := report.graph.count(explain_graph.ONCE):
    lines += ["", f"Runs once, before the first step: {counted(once, 'node')}."]
  return "\n".join(lines)


def summary(report: explain_data.ReportData) -> str:
  """Returns the first sentences of a report."""
  if report.async_embedding:
    condition = f"SmartStage is {'on' if report.enabled else 'off'}, and lookups of embeddings run ahead of the step"
    runs = "run"
  elif report.enabled:
    condition, runs = "SmartStage is on", "run"
  else:
    is_off = setting.current() == setting.Setting.OFF
    by = f"by {setting.VARIABLE}=off" if is_off else "optimizer_options.do_smart_stage"
    condition = f"SmartStage is off ({by}). If it were on"
    runs = "would run"
  staged = sum(len(stage.nodes) for stage in report.stages)
  if staged:
    stages = sum(bool(stage.nodes) for stage in report.stages)
    return (
        f"{condition}: {_share(report, staged)} {runs} ahead of the step, in {counted(stages, 'stage')}. The graph has"
        f" {counted(report.num_nodes, 'node')}.")
  if report.stages:
    why = "nothing can be added to the manual stages; below is why."
  elif report.unstaged_sources:
    why = (
        "nothing can run ahead, since no source of records leads to a node of the step in a way"
        " that can be staged; below is why. If nodes that you fetch depend on input alone, mark"
        " them: tf.train.mark_target_node.")
  else:
    why = (
        "nothing can run ahead, since the graph has no source of records: neither get_next() of"
        " an iterator nor a manual stage (tf.staged, tf.prefetch_join).")
  return f"{condition}: {why}"


def _share(report: explain_data.ReportData, staged: int) -> str:
  """Returns how many nodes run ahead, and of how many that could do so by what they depend on."""
  # Lookups depend on variables as well.
  if any(stage.variables for stage in report.stages):
    return counted(staged, "node")
  names = {name for stage in report.stages for name in stage.nodes}
  alone = limiting_nodes.on_records_alone(report.graph, [source.name for source in report.unstaged_sources])
  total = len(names | alone)
  if total == staged:
    which = "all that depend" if staged > 1 else "the only one that depends"
    return f"{counted(staged, 'node')}, {which} on records alone,"
  return f"{staged} of the {total} nodes that depend on records alone ({100 * staged / total:.0f} %)"


def stage_title(stage: explain_data.Stage, is_on: bool) -> str:
  """Returns a sentence that says what a stage is made of, with SmartStage on or off."""
  if stage.variables:
    return f"Stage '{stage.name}', made of {counted(len(stage.nodes), 'node')} for lookups of embeddings."
  if not stage.by_hand:
    return f"Stage '{stage.name}', made by SmartStage of {counted(len(stage.nodes), 'node')}."
  if stage.nodes:
    extends = "extends" if is_on else "would extend"
    return f"Manual stage '{stage.name}', which SmartStage {extends} by {counted(len(stage.nodes), 'node')}."
  return f"Manual stage '{stage.name}', to which nothing is added."


def _stage(stage: explain_data.Stage, is_on: bool) -> list[str]:
  lines = [stage_title(stage, is_on), "  Records come from:"]
  lines += _listed((f"'{name}'" for name in stage.sources), len(stage.sources))
  for title, sentences in what_it_reads(stage):
    lines.append(f"  {title}:")
    lines += _listed(sentences, len(sentences))
  if stage.variables:
    lines.append(f"  May miss the updates of the last {counted(stage.stale_steps, 'step')} in the variables:")
    lines += _listed((f"'{name}'" for name in stage.variables), len(stage.variables))
  lines += _tensors("What a record carries to the step", stage.boundary)
  if stage.elements:
    lines += _tensors("What a record also keeps of its sources, for fetches", stage.elements)
  title, parts = where_it_waits(stage)
  lines += [f"  {title}:", *_listed(parts, len(parts))] if parts else [f"  {title}."]
  own, internal = explain_groups.without_optimizer(stage.outside, lambda node: node.name)
  lines.append("  The first nodes of the step after it:")
  lines += _listed(map(str, own), len(own))
  if internal:
    lines.append(f"    and {counted(len(internal), 'node')} of gradients and the optimizer")
  return lines


def where_it_waits(stage: explain_data.Stage) -> tuple[str, list[str]]:
  """Returns where the records of a stage wait for the step, as a title with the lines below it, if any."""
  return record_parts.lines(
      stage.parts, lambda tensor: f"'{tensor.name}' {type_and_shape(tensor)}", _ONLY_ITS_SESSION)


def what_it_reads(stage: explain_data.Stage) -> list[tuple[str, list[str]]]:
  """Returns what a stage reads that the rest of the program uses, too, as titles with the items below them."""
  found = []
  if stage.iterators:
    found.append(("Reads the iterators", [_iterator(iterator) for iterator in stage.iterators]))
  if stage.changing:
    found.append((
        "Reads what the program may change. After a change, tf.staging.discard(session) lets its records be made again",
        [f"'{state.name}' ({state.op}), which {_names(state.changers)} may change" for state in stage.changing]))
  return found


def _iterator(iterator: explain_data.StageIterator) -> str:
  if not iterator.other_readers:
    return f"'{iterator.name}', which nothing else reads"
  return f"'{iterator.name}', of which {_names(iterator.other_readers)} may take elements, too"


def _names(names: Sequence[str]) -> str:
  more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
  return ", ".join(f"'{name}'" for name in names[:_MAX_NAMES]) + more


def largest_first(tensors: Sequence[explain_data.BoundaryTensor]) -> list[explain_data.BoundaryTensor]:
  """Returns tensors by their size in a record; those of unknown size are last."""
  return sorted(tensors, key=lambda tensor: (-(tensor.min_bytes or 0), explain_groups.by_number(tensor.name)))


def _tensors(title: str, tensors: Sequence[explain_data.BoundaryTensor]) -> list[str]:
  own, internal = explain_groups.without_optimizer(largest_first(tensors), lambda tensor: tensor.name)
  lines = [f"  {title}, {counted(len(tensors), 'tensor')} of {total_size(tensors)}:"]
  lines += _listed((f"'{tensor.name}' {type_and_shape(tensor)}, {size(tensor)}" for tensor in own), len(own))
  if internal:
    lines.append(
        f"    and {counted(len(internal), 'tensor')} for gradients and the optimizer, {total_size(internal)}")
  return lines


def _reasons(report: explain_data.ReportData) -> list[str]:
  count = sum(reason.nodes for reason in report.reasons)
  if not count:
    return ["No node is in the step alone."]
  lines = [f"In no stage: {counted(count, 'node')}."]
  lines += _listed(map(_reason, report.reasons), len(report.reasons))
  return lines


def _reason(reason: explain_data.Reason) -> str:
  line = f"{counted(reason.nodes, 'node')}, for example {reason.example}"
  others = reason.about[1:]
  if not others:
    return line
  return f"{line}; others on {_names(others)}"


def advice(item: explain_data.Advice) -> str:
  """Returns a piece of advice as sentences."""
  count = "1 node is" if item.nodes == 1 else f"{item.nodes} nodes are"
  if item.others:
    names = _names([item.node.name, *item.others])
    cause = f"one of {1 + len(item.others)} ({item.node.op}): {names}"
  else:
    cause = f"'{item.node.name}' ({item.node.op})" + (f", which {item.node.why}" if item.node.why else "")
  return f"Up to {count} in the step only because of {cause}. {item.advice}"


def _listed(items: Iterable[str], count: int) -> list[str]:
  """Returns one line per item, and a line with the number of omitted items if there are too many."""
  lines = [f"    {item}" for item in itertools.islice(items, _MAX_ITEMS)]
  if count > _MAX_ITEMS:
    lines.append(f"    ... and {count - _MAX_ITEMS} more")
  return lines or ["    none"]


def counted(count: int, noun: str) -> str:
  """Returns a number with its noun, such as "1 node" or "2 nodes"."""
  return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def type_and_shape(tensor: explain_data.BoundaryTensor) -> str:
  """Returns the type and shape of a tensor, such as "int64 [?, 3]"."""
  if tensor.shape.rank is None:
    return f"{tensor.dtype.name} of unknown rank"
  dims = ", ".join("?" if dim is None else str(dim) for dim in tensor.shape.as_list())
  return f"{tensor.dtype.name} [{dims}]"


def size(tensor: explain_data.BoundaryTensor) -> str:
  """Returns the size of a tensor in one record, such as "at least 24 bytes"."""
  if tensor.min_bytes is None:
    return f"unknown size ({tensor.dtype.name})" if tensor.shape.rank is not None else "unknown size"
  return _bytes(tensor.min_bytes) if tensor.is_exact else f"at least {_bytes(tensor.min_bytes)}"


def total_size(tensors: Sequence[explain_data.BoundaryTensor]) -> str:
  """Returns the size of several tensors together in one record."""
  unknown = [tensor for tensor in tensors if tensor.min_bytes is None]
  if len(unknown) == len(tensors):
    return "unknown size"
  known = _bytes(sum(tensor.min_bytes or 0 for tensor in tensors))
  exact = all(tensor.is_exact for tensor in tensors)
  return known if exact else f"at least {known}"


def _bytes(count: int) -> str:
  value, unit = float(count), "bytes"
  for larger in ("KiB", "MiB", "GiB"):
    if value < 1024:
      break
    value, unit = value / 1024, larger
  if unit == "bytes":
    return counted(count, "byte")
  return f"{value:.1f} {unit}"
