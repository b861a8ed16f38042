# SPDX-License-Identifier: Apache-2.0
"""Says in plain words what a stage did in a period, and what to do next."""

from tensorflow_staging.python import api_name
from tensorflow_staging.python.stats import gain
from tensorflow_staging.python.stats import period as period_lib
from tensorflow_staging.python.stats import stage_data

# Below this part of the time, waits do not matter.
_TOLERATED = 0.05
# From this part on, a buffer is as full as its bytes allow.
_FULL = 0.75
# This part of the work of busy cores is most of it.
_MOST = 0.5
_MIB = 2**20


def line(stage: stage_data.StageData, period: period_lib.Period) -> str:
  """Returns one line about a stage: what it did in `period`, what it gained, and what to do next."""
  order = "" if stage.keeps_order else ", in any order"
  later = f" (later {stage.capacity})" if stage.room < stage.capacity else ""
  losses = f" {sentences}" if (sentences := lost(stage)) else ""
  return (
      f"Stage '{stage.name}': {period.records_per_second:.1f} records/s{order}, {stage.records} of {stage.room}{later}"
      f" in the buffer ({stage.bytes / _MIB:.1f} MiB{_on_devices(stage)}). It {gain.hid(period)}.{losses}"
      f"{_kept_on_host(stage)} Steps waited for records {period.step_waits:.0%} of the time; the stage was ahead of"
      f" them, with nothing to do, {period.producer_waits:.0%} of the time: {advice(stage, period)}")


def _on_devices(stage: stage_data.StageData) -> str:
  return "".join(f", {size / _MIB:.1f} of them on {device}" for device, size in sorted(stage.device_bytes.items()))


def _kept_on_host(stage: stage_data.StageData) -> str:
  if not stage.kept_on_host:
    return ""
  return (
      f" A GPU had no memory for {_count(stage.kept_on_host, 'record')}, which steps copied, so the stage holds at most"
      f" {stage.capacity}.")


def lost(stage: stage_data.StageData) -> str:
  """Returns what no step gets of a stage and why, in sentences; empty if nothing is lost."""
  # C++ warns of it, too, but many programs set TF_CPP_MIN_LOG_LEVEL so that nobody sees that.
  sentences = []
  if stage.dropped:
    sentences.append(
        f"It dropped {_count(stage.dropped, 'record')}, which had found no room within timeout_millis.")
  if stage.ignored:
    sentences.append(f"It left out {_count(stage.ignored, 'record')} whose errors ignored_exception_types names.")
  return " ".join(sentences)


def _count(number: int, noun: str) -> str:
  return f"{number:,} {noun}{'' if number == 1 else 's'}"


def advice(stage: stage_data.StageData, period: period_lib.Period) -> str:
  """Returns what holds training back, and what to do next. Never advises what the stage does by itself."""
  if stage.error is not None and not stage.running:
    return _of_end(stage.error)
  if stage.waiting_takes > 0 and period.records_per_second == 0:
    return "a step waits, and no record has come; the input of the stage is slow, or hangs."
  if stage.taken == 0:
    return "no step has taken a record yet." if stage.running else "it has ended, and no step has taken a record."
  return _of_times(stage, period, is_over=not stage.running)


def at_the_end(stage: stage_data.StageData, period: period_lib.Period) -> str:
  """Returns what held training back, and what to change in the next one; empty if too little was measured."""
  if gain.hidden_seconds(period) is None:
    return ""
  return _of_times(stage, period, is_over=True)


def _of_times(stage: stage_data.StageData, period: period_lib.Period, is_over: bool) -> str:
  """Returns the advice that follows from times. `is_over` says whether the stage has ended."""
  is_busy = period.cores_busy is not None and period.cores_busy >= gain.BUSY
  if period.step_waits <= _TOLERATED:
    if gain.hidden_seconds(period) is None:
      return "the step hardly waits, so far."
    if gain.is_little(period):
      return f"hardly anything runs ahead; {api_name.API}.explain says why not more."
    if is_busy:
      return (
          "the step hardly waits, but what runs beside it slows it; only a run without the stage shows whether it gains"
          f" anything: `{api_name.PROGRAM} compare` for SmartStage, or the time of a step without it.")
    return "the step hardly waits; nothing to change."
  if is_busy and period.own_busy is not None and period.own_busy < _MOST * period.cores_busy:
    return (
        f"the cores are {period.cores_busy:.0%} busy, mostly with other programs; run this one with fewer beside it,"
        " and look again.")
  if is_busy:
    return (
        f"the cores are {period.cores_busy:.0%} busy, so no setting helps; give the program more cores, or less to"
        " compute.")
  if period.producer_waits <= _TOLERATED:
    return _if_slower(stage, is_over)
  return "the times of steps and records vary" + _if_varying(stage, is_over)


def _of_end(error: str) -> str:
  if error.startswith("OUT_OF_RANGE"):
    return "the data has ended."
  return f"the stage has ended ({error})"


def _trying(stage: stage_data.StageData, is_over: bool) -> str:
  """Says that a stage has not settled how many producers it has, and what to do."""
  if is_over:
    # The threads of a stage whose data has ended are gone.
    at_the_end = f" ({stage.num_threads} at the end)" if stage.num_threads else ""
    return f"had not found out how many producers help{at_the_end}; train longer to let it settle."
  return f"still tries how many producers help (now {stage.num_threads}); wait until it has settled."


def _more_producers(stage: stage_data.StageData) -> str:
  """Advises more producers to a stage that has a fixed number of them."""
  loses_order = stage.keeps_order and not stage.orders_threads
  order = ", if records may come in another order" if loses_order else ""
  return f"raise num_threads (now {stage.num_threads}), or let the stage choose with tf.data.AUTOTUNE{order}."


def _if_slower(stage: stage_data.StageData, is_over: bool) -> str:
  """The advice if the stage is slower than the step, and cores are idle."""
  if not stage.tunes_threads:
    return (
        f"the stage is slower than the step; {_more_producers(stage)} If what it reads is the limit, only a quicker"
        " source helps.")
  if not stage.threads_settled:
    return f"the stage {'was' if is_over else 'is'} slower than the step, and {_trying(stage, is_over)}"
  return (
      f"more producers than {stage.num_threads} gain nothing, although cores are idle, so what they read is the limit;"
      " speed up its storage, or its dataset with num_parallel_calls.")


def _if_varying(stage: stage_data.StageData, is_over: bool) -> str:
  """The advice if steps and producers wait for each other by turns, without the beginning of its sentence."""
  unsettled = "train longer to let it settle" if is_over else "wait until it has settled"
  if stage.room < stage.capacity:
    return f", and the buffer {'had not grown' if is_over else 'still grows'} to its capacity; {unsettled}."
  if stage.kept_on_host:
    return f", and a GPU has no memory for more records than {stage.capacity}; a smaller batch or model leaves more."
  if not stage.autotune:
    return f"; raise capacity (now {stage.capacity}), or let the stage choose with tf.data.AUTOTUNE."
  if not stage.capacity_settled:
    if is_over:
      return f", and the buffer had not found its capacity ({stage.capacity} at the end); {unsettled}."
    return f", and the buffer still adapts its capacity (now {stage.capacity}); {unsettled}."
  for option, bound, sizes in (
      ("capacity_bytes", stage.capacity_bytes, [stage.bytes - sum(stage.device_bytes.values())]),
      ("device_capacity_bytes", stage.device_capacity_bytes, stage.device_bytes.values())):
    if bound and max(sizes, default=0) >= _FULL * bound:
      return f", and the buffer is full; raise {option} (now {bound / _MIB:.0f} MiB)."
  if not stage.tunes_threads:
    return f", and more capacity than {stage.capacity} gains nothing; {_more_producers(stage)}"
  if not stage.threads_settled:
    return f", and the stage {_trying(stage, is_over)}"
  return (
      f", and neither more capacity than {stage.capacity} nor more producers than {stage.num_threads} gain anything;"
      " nothing to change.")
