# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of the statistics of stages."""

import html as html_lib
from collections.abc import Sequence

from tensorflow_staging.python.stats import advice
from tensorflow_staging.python.stats import gain
from tensorflow_staging.python.stats import period as period_lib
from tensorflow_staging.python.stats import stage_data

_HEADS = ("stage", "records/s", "in the buffer", "producers", "what it gained", "advice")


def html(stages: Sequence[tuple[stage_data.StageData, period_lib.Period]], without: str) -> str:
  """Returns a table with a row for each stage, or a paragraph if there is none.

  Args:
    stages: What is known of each stage, and what it did.
    without: What to say without a stage.
  """
  if not stages:
    return f"<p>{html_lib.escape(without)}</p>"
  rows = [_row("th", _HEADS)]
  for stage, period in stages:
    rows.append(_row("td", (
        stage.name, f"{period.records_per_second:.1f}", f"{stage.records} of {stage.room}", str(stage.num_threads),
        gain.sentence(period), advice.advice(stage, period))))
  return f"<table>{''.join(rows)}</table>"


def _row(tag: str, texts: Sequence[str]) -> str:
  cells = "".join(f'<{tag} style="text-align: left">{html_lib.escape(text)}</{tag}>' for text in texts)
  return f"<tr>{cells}</tr>"
