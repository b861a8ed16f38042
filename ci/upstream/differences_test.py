# SPDX-License-Identifier: Apache-2.0
import differences
import pytest
import results


def test_names_may_have_spaces(tmp_path):
  path = tmp_path / "known.txt"
  path.write_text("# A reason.\n\na_test.py T.good (False)\n")
  assert differences.load(path).always == {results.Test("a_test.py", "T.good (False)")}


def test_a_test_that_may_pass_is_no_difference_that_has_gone(tmp_path):
  path = tmp_path / "known.txt"
  path.write_text("?a_test.py T.slow\na_test.py T.good\n")
  known = differences.load(path)
  slow, good = results.Test("a_test.py", "T.slow"), results.Test("a_test.py", "T.good")
  assert differences.unexpected({slow: "it fails", good: "it fails"}, known, ["a_test.py"]) == []
  assert differences.unexpected({good: "it fails"}, known, ["a_test.py"]) == []
  assert len(differences.unexpected({slow: "it fails"}, known, ["a_test.py"])) == 1


def test_a_line_without_a_test_is_an_error(tmp_path):
  path = tmp_path / "known.txt"
  path.write_text("# A reason.\na_test.py\n")
  with pytest.raises(ValueError, match=r"known.txt:2 is 'a_test.py'; it has to be a file, a space and the name"):
    differences.load(path)
