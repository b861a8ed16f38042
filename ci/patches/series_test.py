# SPDX-License-Identifier: Apache-2.0
"""The commands of the patch series, tested on a tree with one small file."""

import io
import pathlib
import shutil
import tarfile

import pytest
import series

HEADER = """\
Why: A reason.
Hooks: a line.
Why-not-outside: because.
Until: never.
Test: some_test.py
"""
FILE = "area/file.txt"
LINES = [f"line {number}\n" for number in range(1, 31)]


def _diff(at: int, old: str, new: str, context_from: list[str]) -> str:
  """Returns a patch that changes line `at`, counted from 1, of a file with the given lines."""
  before = "".join(f" {line}" for line in context_from[at - 4 : at - 1])
  after = "".join(f" {line}" for line in context_from[at : at + 3])
  return (
      f"{HEADER}--- a/{FILE}\n+++ b/{FILE}\n@@ -{at - 3},7 +{at - 3},7 @@\n"
      f"{before}-{old}\n+{new}\n{after}"
  )


class Project:
  """A project with a series, and the pristine tree to which the series applies."""

  def __init__(self, folder: pathlib.Path):
    self.folder = folder
    self.pristine = folder / "pristine"
    (self.pristine / "area").mkdir(parents=True)
    (self.pristine / FILE).write_text("".join(LINES))
    (folder / "patches").mkdir()
    (folder / "some_test.py").touch()
    self.names = []
    self.add("first.patch", _diff(10, "line 10", "ten", LINES))
    self.add("second.patch", _diff(20, "line 20", "twenty", LINES))

  def add(self, name: str, text: str) -> None:
    self.names.append(name)
    (self.folder / "patches" / name).write_text(text)
    self.write_series(self.names)

  def write_series(self, names: list[str]) -> None:
    (self.folder / "patches/series").write_text("# order\n" + "".join(f"{name}\n" for name in names))

  def series(self) -> series.Series:
    return series.Series(self.folder / "patches")

  def text(self, name: str) -> str:
    return (self.folder / "patches" / name).read_text()

  def copy(self) -> pathlib.Path:
    """Returns a fresh copy of the pristine tree."""
    return pathlib.Path(shutil.copytree(self.pristine, self.folder / "copy", dirs_exist_ok=True))

  def push_down(self, lines: int) -> None:
    """Moves the lines of the pristine file down, as a later release might."""
    (self.pristine / FILE).write_text("new\n" * lines + "".join(LINES))


@pytest.fixture
def project(tmp_path):
  return Project(tmp_path)


def _content(tree: pathlib.Path) -> list[str]:
  return (tree / FILE).read_text().splitlines()


def test_series_and_folder_agree(project):
  assert project.series().names == ["first.patch", "second.patch"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["first.patch"], "not listed in series: second.patch"),
        (["first.patch", "second.patch", "third.patch"], "listed in series, but not in the folder: third.patch"),
        (["first.patch", "first.patch", "second.patch"], "listed twice in series: first.patch"),
    ],
)
def test_series_that_differs_from_the_folder_is_refused(project, names, message):
  project.write_series(names)
  with pytest.raises(series.SeriesError, match=message):
    project.series()


def test_unreadable_patch_is_refused_by_name(project):
  project.add("third.patch", HEADER + "--- a/x\n")
  with pytest.raises(series.SeriesError, match="third.patch:6: expected the lines"):
    project.series()


def test_apply_applies_in_order(project):
  project.add("third.patch", _diff(20, "twenty", "TWENTY", LINES))
  tree = project.copy()
  series.apply(project.series(), tree)
  assert _content(tree)[9] == "ten"
  assert _content(tree)[19] == "TWENTY"


def test_apply_stops_at_a_patch_that_does_not_apply(project):
  (project.pristine / FILE).write_text("".join(LINES).replace("line 10", "other"))
  tree = project.copy()
  with pytest.raises(series.SeriesError, match="first.patch does not apply"):
    series.apply(project.series(), tree)
  assert _content(tree)[19] == "line 20"


def test_apply_refuses_an_offset(project):
  project.push_down(1)
  with pytest.raises(series.SeriesError, match="first.patch applies only with an offset"):
    series.apply(project.series(), project.copy())


def test_apply_refuses_fuzz(project):
  (project.pristine / FILE).write_text("".join(LINES).replace("line 7\n", "other\n"))
  with pytest.raises(series.SeriesError, match="first.patch does not apply"):
    series.apply(project.series(), project.copy())


def test_check_rules_gives_count_and_size(project):
  assert series.check_rules(project.series(), project.folder) == "2 patches change 4 lines in 1 upstream files"


def test_check_rules_names_patch_and_rule(project):
  project.add("third.patch", HEADER.replace("never", ""))
  with pytest.raises(series.SeriesError) as error:
    series.check_rules(project.series(), project.folder)
  assert str(error.value).splitlines()[0] == "third.patch: changes nothing: delete it, or give it a diff"


def test_check_source_accepts_a_tree(project):
  assert "pristine" in series.check_source(project.series(), project.pristine)


def test_check_source_accepts_an_archive(project):
  archive = project.folder / "upstream.tar.xz"
  with tarfile.open(archive, "w:xz") as tar:
    content = (project.pristine / FILE).read_bytes()
    member = tarfile.TarInfo(f"upstream-1.0/{FILE}")
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))
  assert "upstream.tar.xz" in series.check_source(project.series(), archive)


def test_check_source_leaves_the_tree_alone(project):
  series.check_source(project.series(), project.pristine)
  assert (project.pristine / FILE).read_text() == "".join(LINES)


def test_check_source_refuses_an_offset(project):
  project.push_down(2)
  with pytest.raises(series.SeriesError, match="first.patch applies only with an offset"):
    series.check_source(project.series(), project.pristine)


def test_check_source_refuses_a_tree_without_the_file(project):
  (project.pristine / FILE).unlink()
  with pytest.raises(series.SeriesError, match=f"pristine has no {FILE}"):
    series.check_source(project.series(), project.pristine)


def test_check_source_refuses_a_patch_that_refresh_would_write_differently(project):
  wider = project.text("second.patch").replace("@@ -17,7 +17,7 @@\n", "@@ -16,9 +16,9 @@\n line 16\n") + " line 24\n"
  (project.folder / "patches/second.patch").write_text(wider)
  with pytest.raises(series.SeriesError, match="second.patch is not written as 'ci/patches.sh refresh' writes it"):
    series.check_source(project.series(), project.pristine)


def test_refresh_of_patches_in_order_changes_nothing(project):
  assert series.refresh(project.series(), project.pristine) == []


def test_refresh_follows_lines_that_moved(project):
  project.push_down(2)
  assert series.refresh(project.series(), project.pristine) == ["first.patch", "second.patch"]
  assert "@@ -9,7 +9,7 @@" in project.text("first.patch")
  series.check_source(project.series(), project.pristine)
  assert series.refresh(project.series(), project.pristine) == []


def test_edit_and_refresh_change_one_patch_and_adapt_the_later_ones(project):
  tree = project.copy()
  series.edit(project.series(), "first.patch", tree)
  assert _content(tree)[19] == "line 20"
  (tree / FILE).write_text((tree / FILE).read_text().replace("ten\n", "ten\nand a half\n"))

  changed = series.refresh(project.series(), project.pristine, "first.patch", tree)

  assert changed == ["first.patch", "second.patch"]
  assert project.text("first.patch").startswith(HEADER)
  assert "+ten\n+and a half\n" in project.text("first.patch")
  assert "@@ -18,7 +18,7 @@" in project.text("second.patch")
  series.check_source(project.series(), project.pristine)


def test_edit_then_refresh_without_a_change_gives_the_same_bytes(project):
  tree = project.copy()
  series.edit(project.series(), "second.patch", tree)
  assert series.refresh(project.series(), project.pristine, "second.patch", tree) == []


def test_edit_and_refresh_fill_a_new_patch(project):
  (project.pristine / "other.txt").write_text("old\n")
  project.add("third.patch", HEADER)
  tree = project.copy()
  series.edit(project.series(), "third.patch", tree)
  (tree / "other.txt").write_text("brand new\n")
  assert series.refresh(project.series(), project.pristine, "third.patch", tree) == ["third.patch"]
  assert project.text("third.patch") == HEADER + (
      "--- a/other.txt\n+++ b/other.txt\n@@ -1 +1 @@\n-old\n+brand new\n"
  )


def test_refresh_that_leaves_no_change_is_refused(project):
  tree = project.copy()
  with pytest.raises(series.SeriesError, match="first.patch would change nothing"):
    series.refresh(project.series(), project.pristine, "first.patch", tree)


def test_refresh_refuses_an_added_file(project):
  tree = project.copy()
  series.edit(project.series(), "first.patch", tree)
  (tree / "added.cc").touch()
  with pytest.raises(series.SeriesError, match="added.cc is not an upstream file"):
    series.refresh(project.series(), project.pristine, "first.patch", tree)


def test_refresh_names_a_later_patch_that_no_longer_applies(project):
  tree = project.copy()
  series.edit(project.series(), "first.patch", tree)
  (tree / FILE).write_text((tree / FILE).read_text().replace("line 20", "2 0"))
  with pytest.raises(series.SeriesError, match="second.patch does not apply"):
    series.refresh(project.series(), project.pristine, "first.patch", tree)


def test_edit_of_an_unknown_patch_is_refused(project):
  with pytest.raises(series.SeriesError, match="none.patch is not in .*series"):
    series.edit(project.series(), "none.patch", project.copy())
