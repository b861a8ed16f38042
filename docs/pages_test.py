# SPDX-License-Identifier: Apache-2.0
"""Every page is true: its examples run and print what it shows."""

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
    "docs/keras_estimator.md": """
import tensorflow as tf
row = tf.data.Dataset.from_tensors(([[1.]], [[2.]]))
iterator = tf.data.make_one_shot_iterator(row.repeat())
""",
    "docs/smart_stage.md": """
import tensorflow as tf
items, users = (tf.get_variable(name, [10, 4]) for name in ("items", "users"))
optimizer_options = tf.ConfigProto().graph_options.optimizer_options
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
# Takes long, and prints measured numbers: a test of its own runs it on little data.
_QUICK_START = "docs/quick_start.md"


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


def _without_numbers(text: str) -> str:
  return re.sub(r"\d+(\.\d+)?", "0", text)


@pytest.mark.parametrize("page", [page for page in page_examples.pages() if page != _QUICK_START])
def test_examples_print_what_the_page_shows(page):
  for code, shown in page_examples.examples(page):
    printed = page_examples.run(code, "" if "import tensorflow" in code else _NAMES.get(page, ""))
    assert not shown or printed == shown


def test_the_quick_start_is_the_file_prints_what_the_page_shows_and_draws_its_picture():
  (code, _), = page_examples.examples(_QUICK_START)
  text = (page_examples.ROOT / _QUICK_START).read_text()
  assert (page_examples.ROOT / "examples/quick_start.py").read_text().endswith(f"\n{code}")

  printed = page_examples.run(code.replace("20_000, 512, 200", "1_000, 512, 2"))

  shown = re.search(r"## What it prints\n\n```\n(.*?)```", text, re.DOTALL)[1]
  assert _without_numbers(printed) == _without_numbers(shown)
  drawn, expected = (page_examples.svg_texts(path) for path in ("staged.svg", page_examples.DOCS / "quick_start.svg"))
  assert drawn == expected


def test_the_example_of_the_readme_is_the_file():
  assert page_examples.examples("README.md") == [((page_examples.ROOT / "examples/stage.py").read_text(), "")]
