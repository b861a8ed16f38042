# SPDX-License-Identifier: Apache-2.0
"""For each rule, one patch that keeps it and one that breaks it."""

import patch_file
import pytest

HEADER = """\
Why: Two lines
  of reason.
Hooks: a function.
Why-not-outside: because.
Until: never.
Test: area/some_test.py
"""
DIFF = """\
--- a/area/file.cc
+++ b/area/file.cc
@@ -11,7 +11,8 @@
 one
 two
 three
-four
+Four();
+Five();
 five
 six
 seven
"""


@pytest.fixture
def root(tmp_path):
  (tmp_path / "area").mkdir()
  (tmp_path / "area/some_test.py").touch()
  return tmp_path


def _problems(root, text):
  return patch_file.problems(patch_file.parse("a.patch", text), root)


def test_reads_header_files_and_size():
  patch = patch_file.parse("a.patch", HEADER + DIFF + DIFF.replace("file", "other"))
  assert patch.header == HEADER
  assert patch.answers()["Why"] == "Two lines of reason."
  assert patch.paths == ["area/file.cc", "area/other.cc"]
  assert patch.changed_lines == 6


def test_removed_line_that_looks_like_a_file_name_stays_in_its_hunk():
  text = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n--- x\n+++ y\n"
  patch = patch_file.parse("a.patch", text)
  assert patch.removed() == ["-- x"]
  assert patch.added() == ["++ y"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + DIFF[:-1], "a.patch: the last line does not end with a newline"),
        (HEADER + DIFF.replace(" seven\n", ""), "a.patch:18: the hunk is shorter than its first line says"),
        (HEADER + DIFF.replace("-11,7 +11,8", "-11,6 +11,7"), "a.patch:18: expected a hunk, found ' seven'"),
        (HEADER + "--- a/f\n@@ -1 +1 @@\n", "a.patch:7: expected the lines '--- a/PATH' and '+++ b/PATH'"),
        (HEADER + DIFF.replace("@@ -11,7 +11,8 @@", "@@ here @@"), "a.patch:9: expected a hunk, found '@@ here @@'"),
        (HEADER + DIFF.replace("-11,7 +11,8", "-11,6 +11,8"), "a.patch:18: the hunk is longer than its first line"),
    ],
)
def test_unreadable_patch_is_refused(text, message):
  with pytest.raises(patch_file.PatchError) as error:
    patch_file.parse("a.patch", text)
  assert message in str(error.value)


def test_patch_that_keeps_all_rules_has_no_problems(root):
  assert _problems(root, HEADER + DIFF) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (DIFF, "", "changes nothing"),
        ("Until: never.\n", "", "the header must answer Why:, Hooks:, Why-not-outside:, Until:, Test: in this order"),
        ("Until: never.\n", "Until:\n", "'Until:' has no answer"),
        ("Until: never.\n", "Until: never.\nUntil: soon.\n", "'Until:' is answered twice"),
        ("Why: Two", "Note\nWhy: Two", "the header starts with 'Note', not 'Why:'"),
        ("some_test.py", "no_test.py", "'Test:' names area/no_test.py, which does not exist"),
        ("--- a/area/file.cc", "--- /dev/null", "adds or removes a file (/dev/null -> b/area/file.cc)"),
        ("+++ b/area/file.cc", "+++ b/area/other.cc", "must name one file as a/PATH and b/PATH"),
        ("+Five();", "+Five(); ", "trailing whitespace: 'Five(); '"),
        ("of reason.", "of reason. ", "trailing whitespace: '  of reason. '"),
        ("+Five();", "+// four", "commented-out code: '// four'"),
        ("+Five();", "+// Six();", "commented-out code: '// Six();'"),
        ("+Five();", "+  # import os", "commented-out code: '# import os'"),
        ("+Five();", "+  # call(x)", "commented-out code: '# call(x)'"),
    ],
)
def test_broken_rule_is_named(root, old, new, problem):
  problems = _problems(root, (HEADER + DIFF).replace(old, new, 1))
  assert any(problem in found for found in problems), problems


@pytest.mark.parametrize(
    "comment",
    ["// Waits for four (see above).", "# Staging", "#include <four>", "//", "// 0, the default, means 1."],
)
def test_comment_in_words_is_not_taken_for_code(root, comment):
  assert _problems(root, (HEADER + DIFF).replace("+Five();", f"+{comment}")) == []


def test_hunk_without_context_above_is_refused(root):
  text = DIFF.replace("@@ -11,7 +11,8 @@", "@@ -14,4 +14,5 @@").replace(" one\n two\n three\n", "")
  assert _problems(root, HEADER + text) == ["a/area/file.cc, line 14: the hunk has no context above"]
  at_the_top = text.replace("@@ -14,4 +14,5 @@", "@@ -1,4 +1,5 @@")
  assert _problems(root, HEADER + at_the_top) == []


def test_more_context_than_three_lines_is_refused(root):
  text = DIFF.replace("-11,7 +11,8", "-11,8 +11,9") + " eight\n"
  assert _problems(root, HEADER + text) == ["a/area/file.cc, line 11: more than 3 lines of context"]
