#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/ that explain, in both languages, and that of README, whose numbers are in pipelines.md.

`.venv/bin/python benchmarks/drawings.py` writes them. Run it again when pipelines.md has new numbers.
"""

from __future__ import annotations

import pathlib
import re
from typing import NamedTuple

from lib import plain_command_line
from lib import svg

_ROOT = pathlib.Path(__file__).parent.parent
_GREY, _AMBER, _PURPLE, _BLUE, _GREEN = "#8a8a8a", "#e8a33d", "#8f6fb0", "#3d7fb8", "#5a9e5f"
_MIDDLE = 'text-anchor="middle"'
_BOLD = 'font-weight="bold"'


class GainTexts(NamedTuple):
  """The texts of the picture of README."""

  title: str
  batches: str
  labels: tuple[str, str, str, str, str]
  unit: str


_GAIN = {
    "docs/gain.svg": GainTexts(
        "One model, five ways to feed it: time per step", "batches of {} rows",
        ("no stage", "tf.data at its best", "queue, StagingArea", "tf.staged", "SmartStage"), "ms"),
    "docs/zh/gain.svg": GainTexts(
        "同一个模型，五种输入方式：每步耗时", "每批 {} 行",
        ("不用流水线", "tf.data（最快的设置）", "队列、StagingArea", "tf.staged", "SmartStage"), "毫秒"),
}
# Of several rows of pipelines.md the quickest.
_ROWS = (
    ("`tf.data`",),
    ("`tf.data`, `prefetch`", "`tf.data`, `map` and `prefetch` of AUTOTUNE"),
    ("queue, `FIFOQueue` and `QueueRunner`", "`StagingArea`, a Python thread"),
    ("`tf.staged`",),
    ("SmartStage",),
)


class OverlapTexts(NamedTuple):
  """The texts of the picture of steps that overlap."""

  title: str
  without: str
  with_stage: str
  step_lane: str
  stage_lane: str
  read: str
  step: str
  done: str


_OVERLAP = {
    "docs/overlap.svg": OverlapTexts(
        "Without a stage, reading and computing take turns; with a stage, they overlap.", "Without a stage",
        "With a stage", "training step", "the stage's thread", "read {}", "step {}", "3 steps done"),
    "docs/zh/overlap.svg": OverlapTexts(
        "没有流水线时，读取与计算交替进行；有流水线时二者重叠。", "没有流水线", "有流水线", "训练步", "流水线的线程",
        "读取 {}", "计算 {}", "3 步完成"),
}


class RegionTexts(NamedTuple):
  """The texts of the picture of the quick start."""

  title: str
  ahead: tuple[str, ...]
  record: str
  step: tuple[str, ...]


_REGION = {
    "docs/quick_start.svg": RegionTexts(
        "What the quick start stages",
        ("Ahead of the step, on the stage's thread", "read a batch of lines · parse · lower case · clean",
         "split into words · cross with the user · hash"),
        "a record: ids, labels, and what the gradients need of them",
        ("The step", "look up the ids' rows · two dense layers · loss", "gradients · update the variables")),
    "docs/zh/quick_start.svg": RegionTexts(
        "快速上手中提前执行的部分",
        ("在训练步之前，由流水线的线程执行", "读取一批文本行 · 解析 · 转小写 · 清洗", "切词 · 与用户交叉 · 哈希"),
        "一条样本：id、标签，以及梯度要用到的部分",
        ("训练步", "按 id 查 embedding · 两层全连接 · loss", "梯度 · 更新变量")),
}


class Question(NamedTuple):
  """A question, the answer that ends the search, what to take then, and the answer that goes on."""

  text: tuple[str, str]
  ends: str
  take: tuple[str, str]
  goes_on: str


class ChoiceTexts(NamedTuple):
  """The texts of the picture of decisions."""

  title: str
  questions: tuple[Question, ...]
  then: str
  extras: tuple[tuple[str, str], ...]


_CHOICE = {
    "docs/which_stage.svg": ChoiceTexts(
        "Which stage do I need?", (
            Question(
                ("Does a session run the graph?", "(TensorFlow 1, Estimator, Keras in graph mode)"), "no",
                ("tf.staging.ahead", "of a tf.function; in Keras's fit, SmartStage()"), "yes"),
            Question(
                ("Do steps wait for input", "while cores or the GPU are idle?"), "no",
                ("no stage", "a stage fills idle time, and adds no power"), "yes"),
            Question(
                ("Is all preparation", "in functions of the dataset?"), "yes",
                ("tf.data", "map and prefetch with AUTOTUNE"), "no"),
            Question(
                ("Do records come from tf.data, and does", "the model parse, hash or cross them?"), "yes",
                ("SmartStage", "do_smart_stage = True, and the hook"), "no, or not only"),
            Question(
                ("Queues, a Python generator, several sources,", "or a division of your own?"), "yes",
                ("tf.staged", "around the features, and the hook"), ""),
        ), "Then, for either:", (
            ("The stage is wide and delays the step?", "a stage thread pool"),
            ("Steps wait for rows of parameter servers?", "do_async_embedding"),
        )),
    "docs/zh/which_stage.svg": ChoiceTexts(
        "需要哪种流水线？", (
            Question(
                ("计算图是否由 Session 执行？", "（TF 1、Estimator、图模式的 Keras）"), "否",
                ("tf.staging.ahead", "用于 tf.function；Keras 的 fit 用 SmartStage()"), "是"),
            Question(
                ("训练步在等数据，", "而 CPU 核或 GPU 空闲？"), "否",
                ("不需要", "流水线利用空闲时间，不增加算力"), "是"),
            Question(
                ("预处理是否全部", "写在 dataset 的函数里？"), "是",
                ("tf.data", "map 与 prefetch 都用 AUTOTUNE"), "否"),
            Question(
                ("样本来自 tf.data，", "且模型内部还要解析、哈希或交叉？"), "是",
                ("SmartStage", "do_smart_stage = True，加上 hook"),
                "否，或不止于此"),
            Question(
                ("队列、Python 生成器、多个数据源，", "或想自己决定切分位置？"), "是",
                ("tf.staged", "包住特征，加上 hook"), ""),
        ), "在此基础上：", (
            ("流水线线程多或算子大，拖慢了训练步？", "独立线程池"),
            ("训练步在等参数服务器上的 embedding？", "do_async_embedding"),
        )),
}


def pictures() -> dict[str, str]:
  """Returns the text of each picture, by its path in the repository."""
  return {
      **{path: _gain(texts) for path, texts in _GAIN.items()},
      **{path: _overlap(texts) for path, texts in _OVERLAP.items()},
      **{path: _region(texts) for path, texts in _REGION.items()},
      **{path: _choice(texts) for path, texts in _CHOICE.items()},
  }


def steps_of_pipelines() -> dict[str, dict[str, float]]:
  """Returns the milliseconds of a step of pipelines.md, by the rows of a batch and the way."""
  text = (_ROOT / "benchmarks/pipelines.md").read_text()
  tables = re.split(r"^## Batches of (\d+) rows$", text, flags=re.MULTILINE)[1:]
  return {
      batch: {
          way: float(millis)
          for way, millis in re.findall(r"^\| (.+?) \| [\d.]+ \| ([\d.]+) \|", table, re.MULTILINE)
      }
      for batch, table in zip(tables[::2], tables[1::2], strict=True)
  }


def _gain(texts: GainTexts) -> str:
  shapes, y = [svg.text(10, 22, texts.title, _BOLD)], 34
  for batch, steps in steps_of_pipelines().items():
    shapes.append(svg.text(10, y + 14, texts.batches.format(batch)))
    y += 22
    values = [min(steps[row] for row in rows) for rows in _ROWS]
    for label, value, colour in zip(texts.labels, values, (_GREY, _AMBER, _PURPLE, _BLUE, _GREEN), strict=True):
      width = 190 * value / max(values)
      shapes += [
          svg.text(142, y + 15, label, 'text-anchor="end"'),
          f'<rect x="150" y="{y + 2}" width="{width:.1f}" height="18" rx="2" fill="{colour}"/>',
          svg.text(round(156 + width, 1), y + 16, f"{value:.1f} {texts.unit}"),
      ]
      y += 24
    y += 6
  return svg.document(texts.title, y + 4, shapes)


def _overlap(texts: OverlapTexts) -> str:
  box, left = 58, 10

  def boxes(y: int, first: int, stride: int, label: str, colour: str) -> list[str]:
    shapes = []
    for i in range(3):
      x = left + box * (first + stride * i)
      shapes += [
          f'<rect x="{x + 1}" y="{y}" width="{box - 2}" height="24" rx="3" fill="{colour}"/>',
          svg.text(x + box / 2, y + 17, label.format(i + 1), f'{_MIDDLE} fill="#ffffff" font-size="12"'),
      ]
    return shapes

  def done(column: int, top: int, bottom: int) -> list[str]:
    x = left + box * column
    return [f'<path class="line" d="M{x} {top}V{bottom}" stroke-dasharray="3 3"/>']

  shapes = [
      svg.text(left, 22, texts.without, _BOLD),
      svg.text(left, 42, texts.step_lane),
      *boxes(50, 0, 2, texts.read, "#b07415"),
      *boxes(50, 1, 2, texts.step, _BLUE),
      *done(6, 44, 80),
      svg.text(left, 112, texts.with_stage, _BOLD),
      svg.text(left, 132, texts.stage_lane),
      *boxes(140, 0, 1, texts.read, "#b07415"),
      svg.text(left, 184, texts.step_lane),
      *boxes(192, 1, 1, texts.step, _BLUE),
      *done(4, 134, 222),
      svg.text(left + box * 4 + 8, 209, texts.done),
      svg.text(left + box * 6 - 8, 38, texts.done, 'text-anchor="end"'),
  ]
  return svg.document(texts.title, 230, shapes)


def _region(texts: RegionTexts) -> str:

  def part(y: int, kind: str, colour: str, lines: tuple[str, ...]) -> list[str]:
    frame = f'<rect class="{kind}" x="10" y="{y}" width="400" height="70" rx="6" stroke="{colour}"/>'
    heading = svg.text(210, y + 20, lines[0], f"{_MIDDLE} {_BOLD}")
    return [frame, heading, *(svg.text(210, y + 40 + 18 * i, line, _MIDDLE) for i, line in enumerate(lines[1:]))]

  shapes = [
      *part(10, "gain", _GREEN, texts.ahead),
      svg.text(210, 100, f"↓ {texts.record}", _MIDDLE),
      *part(112, "box", _BLUE, texts.step),
  ]
  return svg.document(texts.title, 192, shapes)


def _choice(texts: ChoiceTexts) -> str:
  shapes, y = [], 10
  for question in texts.questions:
    shapes += [
        f'<rect class="box" x="10" y="{y}" width="400" height="46" rx="6" stroke="{_BLUE}"/>',
        svg.text(210, y + 19, question.text[0], _MIDDLE),
        svg.text(210, y + 37, question.text[1], _MIDDLE),
        svg.text(70, y + 75, f"{question.ends} →", 'text-anchor="end"'),
        f'<rect class="gain" x="80" y="{y + 52}" width="330" height="42" rx="6" stroke="{_GREEN}"/>',
        svg.text(245, y + 69, question.take[0], f"{_MIDDLE} {_BOLD}"),
        svg.text(245, y + 86, question.take[1], _MIDDLE),
    ]
    y += 100
    if question.goes_on:
      shapes.append(svg.text(20, y + 14, f"↓ {question.goes_on}"))
      y += 24
  shapes.append(svg.text(10, y + 18, texts.then, _BOLD))
  y += 28
  for question, take in texts.extras:
    shapes += [
        f'<rect class="box" x="10" y="{y}" width="400" height="44" rx="6" stroke="{_AMBER}"/>',
        svg.text(210, y + 18, question, _MIDDLE),
        svg.text(210, y + 36, take, f"{_MIDDLE} {_BOLD}"),
    ]
    y += 52
  return svg.document(texts.title, y + 4, shapes)


def main() -> None:
  for path, picture in pictures().items():
    (_ROOT / path).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
  plain_command_line.check(__doc__)
  main()
