# SPDX-License-Identifier: Apache-2.0
"""Tests the run of test files with shell scripts in place of test files and a server that runs them."""

import os
import pathlib
import sys

import pytest
import results
import run

_GOOD = '<testsuites><testcase name="good" classname="__main__.T"/></testsuites>'
_BAD = '<testsuites><testcase name="good" classname="__main__.T"><failure message="m"/></testcase></testsuites>'
_PASS = f"echo all is well >&2; echo '{_GOOD}' > $XML_OUTPUT_FILE"
_FAIL = f"echo '{_BAD}' > $XML_OUTPUT_FILE; exit 1"
# absl has opened the report when the process crashes.
_CRASH = ": > $XML_OUTPUT_FILE; seq 100 >&2; kill -SEGV $$"


class _Upstream:
  """A source tree with test files, and an interpreter that does for each file what the test says."""

  def __init__(self, folder: pathlib.Path):
    self._folder = folder
    self.source = folder / "source"
    self._tests: list[str] = []
    (self.source / "tensorflow/python").mkdir(parents=True)
    self.python = folder / "python"
    # The copy of the test file is the shell script of one run, and knows where to count runs.
    serve = "forks.serve(lambda file: os.execv('/bin/sh', ['sh', file]))"
    path = str(pathlib.Path(run.forks.__file__).parent)
    self.python.write_text(f"#!{sys.executable}\nimport os, sys\nsys.path.insert(0, {path!r})\nimport forks\n{serve}\n")
    self.python.chmod(0o755)

  def add(self, test: str, *runs: str) -> None:
    """Adds a test file that does what `runs` say: a shell script for its first run, its second, and so on."""
    count = self._folder / f"{test}.runs"
    count.write_text("")
    cases = "\n".join(f"{i}) {script};;" for i, script in enumerate(runs, 1))
    (self.source / "tensorflow/python" / test).write_text(
        f"echo run >> {count}\ncase $(wc -l < {count}) in\n{cases}\nesac\n"
    )
    self._tests.append(test)

  def runs(self, test: str) -> int:
    return len((self._folder / f"{test}.runs").read_text().splitlines())

  def run_file(self, test: str):
    with run.new_server(str(self.python), self.source, "plain") as server:
      return run.run_file(server, self.source, test)

  def main(self, monkeypatch, *options: str) -> int:
    """Runs all files, with one test that passes on the stock wheel in each."""
    (self._folder / "list.txt").write_text("\n".join(self._tests))
    stock = self._folder / "stock.json"
    results.save(stock, {test: {"T.good": results.PASSED} for test in self._tests})
    monkeypatch.setattr(
        sys,
        "argv",
        [
            "run.py",
            f"--python={self.python}",
            f"--source={self.source}",
            f"--list={self._folder / 'list.txt'}",
            f"--stock-results={stock}",
            *options,
        ],
    )
    return run.main()


@pytest.fixture
def upstream(tmp_path):
  return _Upstream(tmp_path)


def test_a_file_that_ends_well_has_results_and_shows_no_log(upstream):
  upstream.add("a_test.py", _PASS)
  found = upstream.run_file("a_test.py")
  assert found.tests == {"T.good": results.PASSED}
  assert found.crash is None
  assert found.text() == "1 passed, 0 failed, 0 skipped"


def test_a_crashed_file_has_no_results_but_its_signal_and_last_lines(upstream):
  upstream.add("a_test.py", _CRASH)
  found = upstream.run_file("a_test.py")
  assert found.tests == {}
  assert found.crash == "crashed with SIGSEGV"
  assert found.log == tuple(str(i) for i in range(61, 101))


def test_a_file_that_crashes_after_its_report_has_crashed(upstream):
  upstream.add("a_test.py", f"{_PASS}; kill -ABRT $$")
  found = upstream.run_file("a_test.py")
  assert found.tests == {}
  assert found.text() == "crashed with SIGABRT; the last lines of its stderr:\n    | all is well"


def test_a_file_that_ends_before_its_tests_has_crashed(upstream):
  upstream.add("a_test.py", "exit 3")
  assert upstream.run_file("a_test.py").text() == "ended with status 3 before its tests, and wrote nothing to stderr"


def test_a_file_that_takes_too_long_is_killed_and_says_where_it_was(upstream, monkeypatch):
  monkeypatch.setattr(run, "_SECONDS_PER_FILE", 0.5)
  # Python's handler of SIGABRT writes the stacks of the threads.
  upstream.add("a_test.py", f"exec {sys.executable} -c 'import threading; threading.Event().wait()'")
  found = upstream.run_file("a_test.py")
  assert found.crash == "took longer than 0.5 s"
  assert any("most recent call first" in line for line in found.log)


def test_a_file_that_survives_its_end_is_killed(upstream, monkeypatch, tmp_path):
  monkeypatch.setattr(run, "_SECONDS_PER_FILE", 0.5)
  monkeypatch.setattr(run, "_SECONDS_FOR_STACKS", 0.1)
  upstream.add("a_test.py", f"trap '' ABRT; echo $$ > {tmp_path}/pid; while :; do read line < /dev/zero; done")
  assert upstream.run_file("a_test.py").crash == "took longer than 0.5 s"
  with pytest.raises(ProcessLookupError):
    os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_crash_that_does_not_repeat_is_reported_and_passes(upstream, monkeypatch, capsys):
  upstream.add("a_test.py", _CRASH, _PASS)
  upstream.add("b_test.py", _PASS)
  assert upstream.main(monkeypatch) == 0
  output = capsys.readouterr().out
  assert "a_test.py: crashed with SIGSEGV; the last lines of its stderr:\n    | 61\n" in output
  assert "a_test.py, repeated: 1 passed" in output
  assert "\na_test.py crashed with SIGSEGV, but not when repeated\n" in output
  assert "2 pass in 2 files; 0 differ from the stock wheel as expected, 0 otherwise" in output
  assert "all is well" not in output
  assert (upstream.runs("a_test.py"), upstream.runs("b_test.py")) == (2, 1)


def test_a_crash_that_repeats_fails(upstream, monkeypatch, capsys):
  upstream.add("a_test.py", _CRASH, "exit 3")
  assert upstream.main(monkeypatch) == 1
  assert "\na_test.py crashed: first it crashed with SIGSEGV, then it ended with status 3" in capsys.readouterr().out


def test_a_file_that_fails_after_its_crash_fails(upstream, monkeypatch, capsys):
  upstream.add("a_test.py", _CRASH, _FAIL)
  assert upstream.main(monkeypatch) == 1
  output = capsys.readouterr().out
  assert "\na_test.py crashed with SIGSEGV, but not when repeated\n" in output
  assert "a_test.py: T.good passes on the stock wheel, but is failed here" in output


def test_a_file_that_fails_is_not_repeated(upstream, monkeypatch):
  upstream.add("a_test.py", _FAIL, _PASS)
  assert upstream.main(monkeypatch) == 1
  assert upstream.runs("a_test.py") == 1


def test_written_results_are_those_of_the_second_run(upstream, monkeypatch, tmp_path):
  upstream.add("a_test.py", _CRASH, _FAIL)
  assert upstream.main(monkeypatch, "--write") == 0
  assert results.load(tmp_path / "stock.json") == {"a_test.py": {"T.good": results.FAILED}}


def test_a_known_difference_passes(upstream, monkeypatch, capsys, tmp_path):
  upstream.add("a_test.py", _FAIL)
  (tmp_path / "known.txt").write_text("# It is right.\na_test.py T.good\n")
  assert upstream.main(monkeypatch, f"--differences={tmp_path / 'known.txt'}") == 0
  assert "1 differ from the stock wheel as expected, 0 otherwise" in capsys.readouterr().out


def test_a_known_difference_that_has_gone_fails(upstream, monkeypatch, capsys, tmp_path):
  upstream.add("a_test.py", _PASS)
  (tmp_path / "known.txt").write_text("a_test.py T.good\nb_test.py T.of_a_file_that_does_not_run\n")
  assert upstream.main(monkeypatch, f"--differences={tmp_path / 'known.txt'}") == 1
  assert "\na_test.py: T.good is listed as a difference, but it is none\n" in capsys.readouterr().out
