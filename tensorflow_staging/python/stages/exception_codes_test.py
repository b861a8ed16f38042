# SPDX-License-Identifier: Apache-2.0
"""`exception_codes` maps exception types to status codes."""

import pytest
import tensorflow as tf

from tensorflow_staging.python.stages import exception_codes


def test_codes_and_classes_mix_without_duplicates():
  types = [tf.errors.ABORTED, tf.errors.OutOfRangeError, tf.errors.AbortedError, StopIteration]
  codes = exception_codes.exception_codes("types", types)
  assert codes == (tf.errors.ABORTED, tf.errors.OUT_OF_RANGE)


@pytest.mark.parametrize("code", range(tf.errors.CANCELLED, tf.errors.UNAUTHENTICATED + 1))
def test_every_class_of_an_error_has_its_code(code):
  cls = tf.errors.exception_type_from_error_code(code)
  assert exception_codes.exception_codes("types", (cls,)) == (code,)


def test_no_types_give_no_codes():
  assert exception_codes.exception_codes("types", ()) == ()


@pytest.mark.parametrize("entry", [0, -1, 17, tf.errors.OpError, ValueError])
def test_an_entry_that_stands_for_no_error(entry):
  with pytest.raises(ValueError, match=r"types\[0\] must be .* got"):
    exception_codes.exception_codes("types", (entry,))


@pytest.mark.parametrize("entry", [True, 1.0, "OUT_OF_RANGE", None, ValueError("an instance")])
def test_an_entry_of_the_wrong_type(entry):
  with pytest.raises(TypeError, match=r"types\[0\] must be a code such as .* got"):
    exception_codes.exception_codes("types", (entry,))


@pytest.mark.parametrize("types", [None, 11, tf.errors.AbortedError, "ABORTED"])
def test_types_that_are_no_list_tuple_or_set(types):
  with pytest.raises(TypeError, match="types must be a tuple of codes such as .* got"):
    exception_codes.exception_codes("types", types)
