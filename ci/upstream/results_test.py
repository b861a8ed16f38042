# SPDX-License-Identifier: Apache-2.0
import results

_RECORD = {"a_test.py": {"T.good": results.PASSED, "T.bad": results.FAILED}}


def test_read_junit(tmp_path):
  path = tmp_path / "x.xml"
  path.write_text("""<testsuites><testsuite>
      <testcase name="good" classname="__main__.T"/>
      <testcase name="bad" classname="__main__.T"><failure message="m"/></testcase>
      <testcase name="broken" classname="__main__.T"><error message="m"/></testcase>
      <testcase name="left_out" classname="__main__.T"><skipped message="m"/></testcase>
      <testcase name="parts" classname="__main__.T"><failure message="m"/></testcase>
      <testcase name="parts" classname="__main__.T"/>
      </testsuite></testsuites>""")
  assert results.read_junit(path) == {
      "T.good": results.PASSED,
      "T.bad": results.FAILED,
      "T.broken": results.FAILED,
      "T.left_out": results.SKIPPED,
      "T.parts": results.FAILED,
  }


def test_a_record_reads_back(tmp_path):
  path = tmp_path / "record.json"
  results.save(path, {"a_test.py": {**_RECORD["a_test.py"], "T.left_out": results.SKIPPED}})
  assert results.load(path) == _RECORD


def test_the_same_results_are_no_regression():
  assert results.regressions(_RECORD, _RECORD) == []


def test_a_known_failure_that_passes_is_no_regression():
  assert results.regressions(_RECORD, {"a_test.py": {"T.good": results.PASSED, "T.bad": results.PASSED}}) == []


def test_what_fails_is_skipped_or_missing_now():
  for now in ({"T.good": results.FAILED}, {"T.good": results.SKIPPED}, {}):
    assert len(results.regressions(_RECORD, {"a_test.py": now})) == 1


def test_a_new_failure():
  now = {"a_test.py": {"T.good": results.PASSED, "T.new": results.FAILED}}
  assert results.regressions(_RECORD, now) == ["a_test.py: T.new fails, and did not run on the stock wheel"]


def test_a_file_without_a_record():
  assert len(results.regressions(_RECORD, {"b_test.py": {}})) == 1
