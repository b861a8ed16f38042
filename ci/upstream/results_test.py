# SPDX-License-Identifier: Apache-2.0
import pytest
import results

_STOCK = {"a_test.py": {"T.good": results.PASSED, "T.bad": results.FAILED}}


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


@pytest.mark.parametrize("text", [None, "", "<testsuites><testsuite><testcase name='good'"])
def test_a_report_that_is_missing_or_cut_short_has_no_results(tmp_path, text):
  path = tmp_path / "x.xml"
  if text is not None:
    path.write_text(text)
  assert results.read_junit(path) is None


def test_saved_results_read_back_without_skipped_tests(tmp_path):
  path = tmp_path / "results.json"
  results.save(path, {"a_test.py": {**_STOCK["a_test.py"], "T.left_out": results.SKIPPED}})
  assert results.load(path) == _STOCK


def test_the_same_results_are_no_regression():
  assert results.regressions(_STOCK, _STOCK) == {}


def test_a_known_failure_that_passes_is_no_regression():
  assert results.regressions(_STOCK, {"a_test.py": {"T.good": results.PASSED, "T.bad": results.PASSED}}) == {}


def test_a_passing_test_that_now_fails_is_skipped_or_missing_is_a_regression():
  for now in ({"T.good": results.FAILED}, {"T.good": results.SKIPPED}, {}):
    assert len(results.regressions(_STOCK, {"a_test.py": now})) == 1


def test_a_failure_without_a_stock_result_is_a_regression():
  now = {"a_test.py": {"T.good": results.PASSED, "T.new": results.FAILED}}
  assert results.regressions(_STOCK, now) == {
      results.Test("a_test.py", "T.new"): "a_test.py: T.new fails, and did not run on the stock wheel"
  }


def test_a_file_without_stock_results_is_reported():
  assert len(results.regressions(_STOCK, {"b_test.py": {}})) == 1
