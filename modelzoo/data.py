#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes synthetic files for the models: `python modelzoo/data.py --dataset criteo --rows 100000 FOLDER`.

The rows have the columns, cardinalities and skew of the real data, and a signal that the models can learn.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import sys
from collections.abc import Iterator

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

from modelzoo.base import criteo
from modelzoo.base import criteo_rows
from modelzoo.base import row_files
from modelzoo.base import taobao_rows
from modelzoo.base.settings import Settings
from modelzoo.base.settings import setting

_CHUNK_ROWS = 20_000


@dataclasses.dataclass(frozen=True)
class Data(Settings):
  """What to write."""

  dataset: str = setting("criteo", "the columns: criteo's, or a user's, an item's and a history's of Taobao",
                         choices=("criteo", "taobao"))
  format: str = setting("csv", "lines of text, or tf.train.Example messages", choices=("csv", "tfrecord"))
  rows: int = setting(100_000, "rows to train on, in all files together", least=1)
  eval_rows: int = setting(10_000, "rows to evaluate with, in a file of their own", least=1)
  files: int = setting(4, "files to train on", least=1)
  seed: int = setting(1, "files of another seed have other rows, but the same signal", least=0)


def write(folder: pathlib.Path, data: Data) -> None:
  """Writes `train_<i>.<format>` and `eval_0.<format>`, and for Taobao's lines `<name>_negative.csv` beside each.

  Args:
    folder: Created if it does not exist. Files of the same names are replaced.
    data: What to write.
  """
  folder.mkdir(parents=True, exist_ok=True)
  counts = [len(part) for part in np.array_split(range(data.rows), data.files)]
  for index, count in enumerate(counts):
    _write_file(folder / f"train_{index}.{data.format}", data, np.random.default_rng([data.seed, 0, index]), count)
  _write_file(folder / f"eval_0.{data.format}", data, np.random.default_rng([data.seed, 1]), data.eval_rows)


def _write_file(path: pathlib.Path, data: Data, random: np.random.Generator, count: int) -> None:
  chunks = _chunks(data, random, count)
  if data.format == "tfrecord":
    row_files.write_examples(path, chunks)
  elif data.dataset == "criteo":
    row_files.write_csv({path: criteo.COLUMNS}, chunks, b",", b"")
  else:
    taobao_rows.write_lines(path, chunks)


def _chunks(data: Data, random: np.random.Generator, count: int) -> Iterator[row_files.Columns]:
  """Yields the rows a chunk at a time, so that files may be larger than memory."""
  rows = {"criteo": criteo_rows.rows, "taobao": taobao_rows.rows}[data.dataset]
  for begin in range(0, count, _CHUNK_ROWS):
    yield rows(random, min(_CHUNK_ROWS, count - begin))


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER", help="where the files are written")
  Data.add_flags(parser)
  flags = parser.parse_args()
  try:
    write(flags.folder, Data.from_flags(flags))
  except OSError as error:
    parser.error(f"{error.filename or flags.folder} cannot be written: {error.strerror}")


if __name__ == "__main__":
  main()
