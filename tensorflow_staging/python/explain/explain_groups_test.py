# SPDX-License-Identifier: Apache-2.0
"""Names are sorted by the numbers in them, and grouped by the scopes that they share."""

import pytest

from tensorflow_staging.python.explain import explain_groups


def _groups(names, most=3, above=""):
  found = explain_groups.by_scope(names, lambda name: name, lambda name: len(name.rpartition("/")[2]), most, above)
  return dict(found), [scope for scope, _ in found]


def test_numbers_in_names_are_sorted_by_value():
  names = ["b/x_10", "b/x_9", "a_10/x", "a_9/x", "a"]
  assert sorted(names, key=explain_groups.by_number) == ["a", "a_9/x", "a_10/x", "b/x_9", "b/x_10"]


def test_scopes_are_as_deep_as_the_number_of_groups_allows():
  names = ["in/a/1", "in/a/2", "in/b/1", "out/c"]
  groups, order = _groups(names)
  assert groups == {"in/a": ["in/a/1", "in/a/2"], "in/b": ["in/b/1"], "out": ["out/c"]}
  assert order[0] == "in/a"
  assert set(_groups(names, most=2)[0]) == {"in", "out"}


def test_the_first_scopes_are_shown_even_if_they_are_many():
  assert len(_groups([f"scope_{i}/x" for i in range(9)])[0]) == 9


def test_groups_within_a_scope_are_at_least_one_level_below_it():
  names = [f"in/C{i}/key" for i in range(9)]
  assert set(_groups(names, most=3, above="in")[0]) == {f"in/C{i}" for i in range(9)}
  assert set(_groups(["in/a", "in/b"], above="in")[0]) == {"in"}


def test_the_largest_group_and_the_largest_item_are_first():
  groups, order = _groups(["small/x", "large/xx", "large/xxxx", "none"])
  assert order == ["large", "", "small"]
  assert groups["large"] == ["large/xxxx", "large/xx"]
  assert groups[""] == ["none"]


def test_no_item_makes_one_empty_group():
  assert _groups([])[0] == {"": []}


@pytest.mark.parametrize("name, expected", [
    ("gradients/input/x", True),
    ("gradients_1/x", True),
    ("head/gradients/x", True),
    ("Adam/update_input/x", True),
    ("train/AdagradOptimizer/x", True),
    ("GradientDescent", True),
    ("input_layer/Adam_category/x", False),
    ("training_data/x", False),
    ("input/x", False),
])
def test_what_an_optimizer_adds_is_known_by_its_scope(name, expected):
  assert explain_groups.is_of_optimizer(name) == expected
