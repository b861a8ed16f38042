# SPDX-License-Identifier: Apache-2.0
"""The numbers that pages quote, each read from the one benchmark that has it, or counted."""

import decimal
import functools
import pathlib
import re
from collections.abc import Iterable

BENCHMARKS = pathlib.Path(__file__).parent.parent / "benchmarks"

_GPU_MODELS = ("DLRM", "DeepFM", "DSSM", "DIN")
_SLOWER_ALONE = ("DeepFM", "DSSM", "DIN")
_H200, _H100 = "## One NVIDIA H200, 26 November 2026, a second run", "## One NVIDIA H100"
_ON_CPU = "SmartStage, on CPU, 1 producer"
_SETTINGS = (_ON_CPU, "the same, 4 producers", "the same, 8 producers", "the same, AUTOTUNE")
_FIFO_QUEUE, _STAGING_AREA = "`FIFOQueue`, `QueueRunner`", "`StagingArea`, a Python thread"

# What was measured once, by the words of results.md before or behind it.
_ONCE = {
    "build_s": r"A clean build takes ([\d.]+) s",
    "deeprec_dlrm": r"DeepRec's documents report 1\.0(\d) for DLRM",
    "dien_local_rounds": r"did not recur in (\d+) more rounds on the same machine",
    "dien_remote_rounds": r"in eight rounds; (\d+) rounds of the same two ways",
    "first_steps_low": r"to 1\.027 times as fast \(DeepFM\), the first not counted, and ([\d.]+) to",
    "first_steps_high": r"the first not counted, and [\d.]+ to ([\d.]+) times with it",
    "hidden_without": r"it takes the sum: ([\d.]+) ms where each",
    "hidden_with": r"sleeps for 6 ms, and ([\d.]+) with a stage",
    "other_scalar_low": r"A record of one scalar cost (\d+) to \d+ µs",
    "other_scalar_high": r"A record of one scalar cost \d+ to (\d+) µs",
    "other_area_low": r"µs, ([\d.]+) to [\d.]+ of what `StagingArea` took",
    "other_area_high": r"µs, [\d.]+ to ([\d.]+) of what `StagingArea` took",
    "other_no_stage": r"a step without a stage took (\d+) instead of \d+ µs",
    "pool_without": r"a step takes ([\d.]+) ms on the session's threads",
    "pool_with": r"and ([\d.]+) ms with the stage on a pool of one thread",
    "pool_one_without": r"both take the same: ([\d.]+) and [\d.]+ ms",
    "pool_one_with": r"both take the same: [\d.]+ and ([\d.]+) ms",
    "report_percent": r"A report every 100 steps costs ([\d.]+) %",
    "no_stage_times": r"make_callable` [\d.]+ µs, ([\d.]+) times",
    "import_v2_times": r"TensorFlow 2's API, ([\d.]+) times as long",
    "import_v1_times": r"TensorFlow 1's, ([\d.]+) times",
    "autotune_soon": r"AUTOTUNE takes [\d.]+ to ([\d.]+) times as long",
    "capacity_low": r"steps take \* ([\d.]+) times as long",
    "capacity_high": r"([\d.]+) times as long where both wait",
    "python_with": r"is one function then takes (\d+) instead",
    "python_without": r"is one function then takes \d+ instead of (\d+) µs",
    "sessions_low": r"four of DLRM by (\d) % without a stage",
    "sessions_high": r"in another run by up to (\d) %",
}


class Table:
  """The tables of a benchmark's page below one heading."""

  def __init__(self, page: str, heading: str):
    text = (BENCHMARKS / page).read_text(encoding="utf-8")
    self._rows: list[tuple[list[str], dict[str, str]]] = []
    for block in re.findall(r"(?:^\|.*\n)+", text[text.index(heading):], re.MULTILINE):
      head, _, *body = ([cell.strip() for cell in line.strip()[1:-1].split("|")] for line in block.splitlines())
      first = ""
      for cells in body:
        first = cells[0] or first
        self._rows.append(([first, *cells[1:]], dict(zip(head, cells, strict=True))))

  def number(self, *names: str, column: str) -> float:
    """Returns the first number in a column of the first row that begins with these names."""
    for cells, by_column in self._rows:
      if tuple(cells[:len(names)]) == names and column in by_column:
        return float(re.search(r"\d[\d.,]*\d|\d", by_column[column])[0].replace(",", ""))
    raise KeyError(f"{names} has no column {column}")


@functools.cache
def table(page: str, heading: str = "") -> Table:
  """Returns the tables of a page, or those below one of its headings."""
  return Table(page, heading)


def autotuned() -> list[str]:
  """Returns the cases of autotune.md."""
  text = (BENCHMARKS / "autotune.md").read_text(encoding="utf-8")
  return re.findall(r"^\| ([^|]+?) \| [^|]+ \| [^|]+ \| [\d.]+ \|", text, re.MULTILINE)


def _of_order() -> dict[str, str]:
  """Returns what order costs, in percent: where records wait or compute at most, and with large ones."""
  text = (BENCHMARKS / "order.md").read_text(encoding="utf-8")
  cases = re.findall(r"^\| ([^|]+?) \| \d+ \|", text, re.MULTILINE)
  of = {case: _percent(max(1, table("order.md").number(case, column="in order / any order"))) for case in cases}
  large = of.pop("fills records of 16 MB")
  return {"order": str(max(of.values())), "order_large": str(large)}


def _percent(ratio: float) -> int:
  """Returns how many percent faster, or slower, a way is that is so many times as fast."""
  return int(abs(decimal.Decimal(str(ratio)) - 1) * 100 + decimal.Decimal("0.5"))


def _span(ratios: Iterable[float]) -> str:
  """Returns the least and the greatest of several percentages."""
  percents = sorted(_percent(ratio) for ratio in ratios)
  return f"{percents[0]} to {percents[-1]}"


def _of_pipelines() -> dict[str, str]:
  found = {}
  queue = "queue, `FIFOQueue` and `QueueRunner`"
  ways = {"area": _STAGING_AREA, "fifo": queue, "staged": "`tf.staged`", "smart": "SmartStage"}
  for batch in ("256", "32"):
    rows = table("pipelines.md", f"## Batches of {batch} rows")
    ratios = {name: rows.number(way, column="times as fast as `feed_dict`") for name, way in ways.items()}
    found[f"fed_{batch}"] = _span(ratios.values())
    found |= {f"{name}_{batch}": f"{ratio:.3f}" for name, ratio in ratios.items()}
    prefetch = rows.number("`tf.data`, `prefetch`", column="times as fast as `feed_dict`")
    found[f"prefetch_{batch}"] = f"{prefetch:.3f}"
  found["staged_fed"] = _span(float(found[f"staged_{batch}"]) for batch in ("256", "32"))
  return found


def _of_models() -> dict[str, str]:
  faster = "times as fast as no stage"
  local, remote = (table("models.md", f"## From {files}") for files in ("local files", "files behind the latency"))
  closely = table("models_closely.md")
  wide, dssm = (
      [closely.number(name, column="times as fast"), local.number(name, "SmartStage", column=faster)]
      for name in ("Wide & Deep", "DSSM"))
  gained = [remote.number(name, "SmartStage", column=faster) for name in (*_GPU_MODELS, "Wide & Deep")]
  assert _percent(dssm[0]) == _percent(dssm[1])
  names = {"Wide & Deep": "wide", "DSSM": "dssm", "DIEN": "dien", "DeepFM": "deepfm"}
  return {
      **{f"closely_{short}": f"{closely.number(name, column='times as fast'):.3f}" for name, short in names.items()},
      "wide": _span(wide), "dssm": str(_percent(dssm[0])), "remote": _span(gained),
      "dien_local": str(_percent(closely.number("DIEN", column="times as fast"))),
      "dien_remote": str(_percent(remote.number("DIEN", "SmartStage", column=faster))),
  }


def _of_gpus() -> dict[str, str]:
  h200, h100 = table("gpu.md", _H200), table("gpu.md", _H100)

  def ratio(name: str, *ways: str, base: str = "no stage") -> float:
    column = f"{name}, best"
    return max(h200.number(way, column=column) for way in ways) / h200.number(base, column=column)

  def on_h100(name: str) -> str:
    return str(_percent(h100.number(_ON_CPU, column=name) / h100.number("no stage", column=name)))

  def keras(row: str, base: str) -> str:
    return f"{h100.number(row, column='the same with `tf.staging.SmartStage`') / h100.number(row, column=base):.1f}"

  beside = {name: ratio(name, _ON_CPU, base="`prefetch_to_device`") for name in _GPU_MODELS}
  hashed, looked_up = "26 columns of words, hashed", "texts of 40 words, looked up"
  alone = "SmartStage without `stage_subgraph_on_cpu`, 1 producer"
  return {
      **{f"h200_best_{name.lower()}": f"{ratio(name, *_SETTINGS):.2f}" for name in _GPU_MODELS},
      **{f"h100_{name.lower()}_times": f"{h100.number(_ON_CPU, column=name) / h100.number('no stage', column=name):.2f}"
         for name in ("DLRM", "DeepFM")},
      "h200_default": _span(ratio(name, _ON_CPU) for name in _GPU_MODELS),
      "h200_best": _span(ratio(name, *_SETTINGS) for name in _GPU_MODELS),
      "h200_alone": _span(ratio(name, alone) for name in _SLOWER_ALONE),
      "h200_dlrm_beside_prefetch": str(_percent(beside.pop("DLRM"))),
      "h200_others_beside_prefetch": _span(beside.values()),
      "h100_dlrm": on_h100("DLRM"), "h100_deepfm": on_h100("DeepFM"), "h100_dien": on_h100("DIEN"),
      "h100_hashed": keras(hashed, "in the model, steps/s"),
      "h100_looked_up": keras(looked_up, "in the model, steps/s"),
      "h100_hashed_map": keras(hashed, "in `dataset.map`"), "h100_looked_up_map": keras(looked_up, "in `dataset.map`"),
  }


def _of_small_programs() -> dict[str, str]:
  gain, plain = table("smart_stage.md", "## The gain"), "SmartStage, the work in the step"
  ways = {
      "one_producer": plain, "two_producers": f"{plain}, `num_threads=2`",
      "map_gain": "`tf.data`, the work in `map(AUTOTUNE)`, `prefetch(AUTOTUNE)`"}
  faster = {name: gain.number(way, column="speed-up over the plain way") for name, way in ways.items()}
  overlap = table("overlap.md")
  slept = {"overlap_with": "`tf.staged`", "overlap_prefetch": "`tf.data`, `prefetch`", "overlap_without": "no stage"}
  keras = table("ahead.md")
  beside = {
      "keras_hash": "26 `Hashing`, 512 rows", "keras_text": "`TextVectorization`, 256 texts of 100 words",
      "keras_waits": "... whose source waits 5 ms", "keras_images": "flip, rotation and zoom, 64 images"}
  speeds = {name: keras.number(row, column="... beside the map") for name, row in beside.items()}
  return {
      **{name: str(_percent(value)) for name, value in (faster | speeds).items()},
      **{f"{name}_times": f"{value:.2f}" for name, value in (faster | speeds).items()},
      **{name: f"{overlap.number(way, column='ms per step'):.1f}" for name, way in slept.items()},
  }


def _of_costs() -> dict[str, str]:
  steps, wheels, servers = table("stage_overhead.md"), table("step_of_two_wheels.md"), table("parameter_servers.md")

  def step(record: str, way: str) -> str:
    return f"{steps.number(record, way, column='µs per step, 1'):.0f}"

  def lookups(delay: str) -> float:
    return servers.number(delay, "SmartStage, lookups ahead", column="times as fast as no stage")

  many, producers = "400 tensors of 16 floats", table("scale.md", "## Producers")
  return {
      "scalar": step("one scalar", "`tf.staged`"), "scalar_fifo": step("one scalar", _FIFO_QUEUE),
      "scalar_area": step("one scalar", _STAGING_AREA), "scalar_no_stage": step("one scalar", "no stage"),
      "many": step(many, "`tf.staged`"), "many_area": step(many, _STAGING_AREA), "many_fifo": step(many, _FIFO_QUEUE),
      "large": step("one tensor of 64 MB", "`tf.staged`"),
      **{f"wheel_{name}": f"{wheels.number(source, column='ratio'):.2f}" for name, source in
         {"one_shot": "a one-shot iterator", "initialisable": "an initialisable iterator"}.items()},
      "lookups_gain": str(_percent(lookups("3000 µs"))),
      "lookups_lose": _span(map(lookups, ("0 µs", "250 µs"))),
      "scale_waits": f"{producers.number('waits', '8', column='times as fast as one'):.1f}",
      "scale_computes": f"{producers.number('computes', '4', column='times as fast as one'):.1f}",
      **_of_order(),
      "autotune": str(max(_percent(table("autotune.md").number(case, column="chosen / best")) for case in autotuned())),
  }


def _of_sentences() -> dict[str, str]:
  text = " ".join((BENCHMARKS / "results.md").read_text(encoding="utf-8").split())
  found = {name: re.findall(pattern, text) for name, pattern in _ONCE.items()}
  assert {name: values for name, values in found.items() if len(values) != 1} == {}
  return {name: value for name, (value,) in found.items()}


@functools.cache
def numbers() -> dict[str, str]:
  """Returns each measured number that a page quotes, as pages write it, by its name."""
  once = _of_sentences()
  return once | _of_pipelines() | _of_models() | _of_gpus() | _of_small_programs() | _of_costs() | {
      "no_stage": f"{(float(once['no_stage_times']) - 1) * 100:.1f}",
      "imports": _span([float(once["import_v1_times"]), float(once["import_v2_times"])]),
      "patches": str(len(list((BENCHMARKS.parent / "patches").glob("*.patch")))),
      "python": str(round(float(once["python_with"]) - float(once["python_without"]), -1)).partition(".")[0],
  }
