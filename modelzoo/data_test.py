# SPDX-License-Identifier: Apache-2.0
"""The files of data.py have the formats' columns, and both forms of a row say the same."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from modelzoo import data
from modelzoo.base import criteo
from modelzoo.base import formats
from modelzoo.base import taobao


def test_criteo_has_40_columns_with_its_skew(folders):
  lines = (folders["criteo", "csv"] / "train_0.csv").read_text().splitlines()
  rows = [line.split(",") for line in lines]
  assert len(rows) == 10_000
  assert {len(row) for row in rows} == {40}
  columns = dict(zip(criteo.COLUMNS, zip(*rows, strict=True), strict=True))
  assert 0.2 < columns["clicked"].count("1") / len(rows) < 0.4
  assert len(set(columns["C9"])) == 3
  (_, most), *_ = collections.Counter(columns["C12"]).most_common(1)
  assert most > 20 * len(rows) / len(set(columns["C12"]))
  assert "" in columns["I1"]
  assert "" in columns["C3"]


def test_taobao_has_histories_of_equal_length_and_a_line_of_negatives_for_each(folders):
  folder = folders["taobao", "csv"]
  rows = [line.split("\t") for line in (folder / "train_0.csv").read_text().split("\n")[:-1]]
  negatives = [line.split("\t") for line in (folder / "train_0_negative.csv").read_text().split("\n")[:-1]]
  assert len(rows) == len(negatives) == 10_000
  assert {len(row) for row in rows} == {6}
  for row, negative in zip(rows, negatives, strict=True):
    assert len({cell.count("\x02") for cell in (*row[4:], *negative)}) == 1


@pytest.mark.parametrize("name", ["criteo", "taobao"])
def test_the_lines_and_the_messages_of_a_seed_say_the_same(name, tmp_path):
  form = formats.CRITEO if name == "criteo" else formats.TAOBAO_WITH_NEGATIVES
  values = []
  for kind in formats.KINDS:
    data.write(tmp_path, data.Data(dataset=name, format=kind, rows=20, eval_rows=1, files=1, seed=3))
    with tf.Graph().as_default(), tf.Session() as session:
      reader = formats.reader(form, [f"train_0.{kind}"])
      records = tf.data.make_one_shot_iterator(reader.open(str(tmp_path / f"train_0.{kind}")).batch(20)).get_next()
      features, labels = reader.parse(records)
      dense = {key: each.to_tensor() if key in (*taobao.HISTORY, *taobao.NEGATIVE) else each
               for key, each in features.items()}
      values.append(session.run(dense | {"labels": labels}))
  lines, messages = values
  assert lines.keys() == messages.keys()
  for key, value in lines.items():
    np.testing.assert_array_equal(value, messages[key], err_msg=key)


def test_a_seed_gives_the_same_files_and_another_seed_others(tmp_path):
  contents = []
  for seed in (1, 1, 2):
    data.write(tmp_path, data.Data(rows=10, eval_rows=5, files=1, seed=seed))
    contents.append((tmp_path / "train_0.csv").read_bytes() + (tmp_path / "eval_0.csv").read_bytes())
  assert contents[0] == contents[1] != contents[2]


def test_a_folder_that_cannot_be_written(tmp_path, capsys, monkeypatch):
  (tmp_path / "file").write_text("")
  monkeypatch.setattr("sys.argv", ["data.py", str(tmp_path / "file" / "folder")])
  with pytest.raises(SystemExit):
    data.main()
  assert f"{tmp_path}/file/folder cannot be written: Not a directory" in capsys.readouterr().err
