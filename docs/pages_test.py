# SPDX-License-Identifier: Apache-2.0
"""Every page is true: its examples run and print what it shows."""

import importlib.metadata
import re
import sys

import page_examples
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import test_util

# What the examples of a page leave to the reader's program.
_NAMES = {
    "docs/gpu.md": """
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2
x = y = weight_x = weight_y = tf.ones([2, 2])
bias = 1.
features = [tf.constant(1)]
config = tf.ConfigProto()
""",
    "docs/several_devices.md": """
import tensorflow as tf
x = weight_x = tf.ones([2, 2])
""",
    "docs/tensorflow_2.md": """
import tensorflow as tf
row = tf.data.Dataset.from_tensors(([[1.]], [[2.]]))
iterator = tf.data.make_one_shot_iterator(row.repeat())
""",
    "docs/smart_stage.md": """
import tensorflow as tf
items, users = (tf.get_variable(name, [10, 4]) for name in ("items", "users"))
optimizer_options = tf.ConfigProto().graph_options.optimizer_options
dataset = tf.data.Dataset.from_tensors(1.)
weight = tf.get_variable("weight", [])
""",
    "modelzoo/README.md": """
import tensorflow as tf
from modelzoo.base import criteo
line = ",".join(["1"] * (1 + len(criteo.NUMBERS)) + ["red"] * len(criteo.CATEGORIES))
parsed, labels = criteo.parse_csv(tf.constant([line]))
""",
    "docs/stage_thread_pools.md": """
import tensorflow as tf
features = [tf.constant(1)]
""",
    "docs/staged.md": """
import tensorflow as tf
log_folder = "logs"
""",
}
# What they import that no other test should find.
_IMPORTED = ("modelzoo", "tensorflow.contrib")
# Its second program takes long, and prints measured numbers: a test of its own runs it on little data.
_QUICK_START = "docs/quick_start.md"
# Needs TensorFlow 2's API, so tests of its own run its examples.
_AHEAD = "docs/ahead.md"


@pytest.fixture(autouse=True)
def restored(tmp_path, monkeypatch):
  """Runs the examples of a page in a folder of their own, and undoes what they import and change in TensorFlow."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(page_examples.ROOT)
  modules = set(sys.modules)
  names = set(vars(tf))
  verbosity = tf.compat.v1.logging.get_verbosity()
  yield
  tf.compat.v1.logging.set_verbosity(verbosity)
  for name in set(vars(tf)) - names:
    delattr(tf, name)
  for name in [name for name in set(sys.modules) - modules if name.startswith(_IMPORTED)]:
    del sys.modules[name]
  test_util.assert_no_stage_thread()


def test_the_site_and_the_changes_have_the_version_of_the_wheel():
  version = importlib.metadata.version("tensorflow")
  assert f"site_name: TensorFlow with pipeline staging {version}\n" in (
      page_examples.ROOT / "ci/site/mkdocs.yml").read_text()
  assert f"\n## {version}\n" in (page_examples.ROOT / "CHANGELOG.md").read_text()


def _without_numbers(text: str) -> str:
  return re.sub(r"\d+(\.\d+)?", "0", text)


@pytest.mark.parametrize("page", [page for page in page_examples.pages() if page not in (_QUICK_START, _AHEAD)])
def test_examples_print_what_the_page_shows(page):
  for code, shown in page_examples.examples(page):
    printed = page_examples.run(code, "" if "import tensorflow" in code else _NAMES.get(page, ""))
    assert not shown or printed == shown


def test_the_quick_start_is_the_file_prints_what_the_page_shows_and_draws_what_was_staged():
  _, (code, _) = page_examples.examples(_QUICK_START)
  text = (page_examples.ROOT / _QUICK_START).read_text()
  assert (page_examples.ROOT / "examples/quick_start.py").read_text().endswith(f"\n{code}")

  printed = page_examples.run(code.replace("20_000, 128, 100, 12", "1_000, 128, 2, 4"))

  *shown, verdict = re.search(r"## What it prints\n\n```\n(.*?)```", text, re.DOTALL)[1].splitlines()
  *lines, printed_verdict = printed.splitlines()
  assert [_without_numbers(line) for line in lines] == [_without_numbers(line) for line in shown]
  for sentence in (verdict, printed_verdict):
    assert f'return "{sentence}"' in code
  # The losses are equal, and both summaries are those of the report.
  assert len(set(re.findall(r"loss ([\d.]+)", printed))) == 1
  staged, = re.findall(r"(\d+) nodes, all that depend on records alone", printed)
  assert f"ahead of the step: stage 'prefetch', {staged} nodes" in page_examples.svg_texts("staged.svg")


def test_the_six_lines_of_the_readme_stage_a_tf_data_program():
  diff, = re.findall(r"^```diff\n(.*?)^```$", (page_examples.ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
  removed, added = ("".join(f"{line[1:]}\n" for line in diff.splitlines() if line[0] == sign) for sign in "-+")
  assert (removed.count("\n"), added.count("\n")) == (1, 5)
  (plain, _), _ = page_examples.examples("docs/migrating_tf_data.md")
  assert removed in plain
  statistics = "    stage, = tf.staging.stats(sess)\nprint(stage.taken, 'records')\n"
  staged = plain.replace(removed, added).replace("\nprint(steps)\n", f"\n{statistics}print(steps)\n")
  printed = page_examples.run(staged)
  assert printed == "50 records\n50\n"
