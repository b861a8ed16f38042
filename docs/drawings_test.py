# SPDX-License-Identifier: Apache-2.0
"""The pictures that explain are those that benchmarks/drawings.py draws, with the numbers of pipelines.md."""

import drawings
import page_examples
import pytest


@pytest.mark.parametrize("path", drawings.pictures())
def test_the_picture_is_drawn(path):
  assert (page_examples.ROOT / path).read_text(encoding="utf-8") == drawings.pictures()[path]


def test_the_numbers_are_those_of_the_table():
  steps = drawings.steps_of_pipelines()
  assert list(steps) == ["256", "32"]
  texts = page_examples.svg_texts(page_examples.DOCS / "gain.svg")
  for ways in steps.values():
    shown = (
        "`tf.data`", "`tf.data`, `prefetch`", "queue, `FIFOQueue` and `QueueRunner`", "`tf.staged`", "SmartStage")
    assert {f"{ways[way]:.1f} ms" for way in shown} <= texts


@pytest.mark.parametrize("path", [
    path.relative_to(page_examples.ROOT).as_posix()
    for folder in ("docs", "benchmarks") for path in sorted((page_examples.ROOT / folder).rglob("*.svg"))])
def test_a_picture_suits_light_and_dark_pages(path):
  assert "prefers-color-scheme:dark" in (page_examples.ROOT / path).read_text(encoding="utf-8")
