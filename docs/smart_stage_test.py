# SPDX-License-Identifier: Apache-2.0
"""smart_stage.md shows the picture that its example draws."""

import page_examples


def test_the_picture_is_that_of_the_example(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  code, shown = page_examples.examples("docs/smart_stage.md")[-1]
  assert page_examples.run(code) == shown
  assert page_examples.svg_texts("smart_stage.svg") == page_examples.svg_texts(page_examples.DOCS / "smart_stage.svg")
