# SPDX-License-Identifier: Apache-2.0
"""`tensorflow_staging.ahead` on an official TensorFlow: steps give what they give without a stage, and are staged."""

import gc

import pytest
import tensorflow as tf

import tensorflow_staging

_BUCKETS = 1000003


def _data() -> tf.data.Dataset:
  return tf.data.Dataset.range(40).shuffle(10, seed=3).batch(2)


def _new_step():
  calls = tf.Variable(0.0)

  @tf.function
  def step(iterator):
    numbers = next(iterator)
    ids = tf.strings.to_hash_bucket_fast(tf.strings.as_string(numbers), _BUCKETS)
    calls.assign_add(1.0)
    return numbers, ids

  return step


def _values(step, iterator, count: int = 1000) -> list[tuple]:
  """Returns what the next calls of a step give, until the end of the data."""
  values = []
  try:
    for _ in range(count):
      values.append(tuple(tuple(part.numpy().tolist()) for part in step(iterator)))
  except tf.errors.OutOfRangeError:
    pass
  return values


@pytest.fixture(name="expected")
def _expected() -> list[tuple]:
  """Returns what a step gives without a stage."""
  return _values(_new_step(), iter(_data()))


@pytest.mark.parametrize("num_threads", [1, 3])
def test_values_and_their_order_are_those_without_a_stage(expected, num_threads):
  step = tensorflow_staging.ahead(_new_step(), capacity=4, num_threads=num_threads)
  iterator = iter(_data())
  values = _values(step, iterator)
  assert values == expected and len(values) == 20
  assert step.why_not is None
  stage, = tensorflow_staging.stats(step)
  assert stage.taken == 20
  divided, = tensorflow_staging.explain(step).steps
  assert "StringToHashBucketFast" in divided.nodes


def test_a_checkpoint_resumes_at_the_next_record(expected, tmp_path):
  step = tensorflow_staging.ahead(_new_step(), capacity=8)
  iterator = iter(_data())
  checkpoint = tf.train.Checkpoint(iterator=iterator)
  values = _values(step, iterator, 5)
  path = checkpoint.save(str(tmp_path / "checkpoint"))
  values += _values(step, iterator, 4)
  assert values == expected[:9]
  checkpoint.restore(path)
  assert _values(step, iterator) == expected[5:]


@pytest.mark.parametrize("is_staged", [False, True])
def test_another_iterator_resumes_from_the_checkpoint(expected, tmp_path, is_staged):
  step = tensorflow_staging.ahead(_new_step(), capacity=8)
  iterator = iter(_data())
  _values(step, iterator, 5)
  path = tf.train.Checkpoint(iterator=iterator).save(str(tmp_path / "checkpoint"))
  step.stop()
  other = tensorflow_staging.ahead(_new_step()) if is_staged else _new_step()
  resumed = iter(_data())
  if is_staged:
    assert _values(other, resumed, 1) == expected[:1]
  tf.train.Checkpoint(iterator=resumed).restore(path)
  assert _values(other, resumed) == expected[5:]


def test_a_read_of_the_program_gets_the_next_element(expected):
  step = tensorflow_staging.ahead(_new_step())
  iterator = iter(_data())
  for i, (numbers, _) in enumerate(expected):
    read = step(iterator)[0] if i % 2 else next(iterator)
    assert tuple(read.numpy().tolist()) == numbers


def test_an_optional_read_of_the_program_gets_the_next_element(expected):
  step = tensorflow_staging.ahead(_new_step())
  iterator = iter(_data())
  assert _values(step, iterator, 1) == expected[:1]
  for numbers, _ in expected[1:]:
    assert tuple(iterator.get_next_as_optional().get_value().numpy().tolist()) == numbers
  assert not iterator.get_next_as_optional().has_value()


def test_nothing_of_an_ended_iterator_reaches_a_later_one(expected):
  step = tensorflow_staging.ahead(_new_step())
  for _ in range(100):
    iterator = iter(_data())  # Often at the address of the one before.
    assert _values(step, iterator, 1) == expected[:1]
    del iterator
    gc.collect()


def test_an_error_comes_after_as_many_steps_and_the_next_step_goes_on():
  data = tf.data.Dataset.range(6).map(lambda i: tf.debugging.check_numerics(1 / (tf.cast(i, tf.float64) - 2), "bad"))
  total = tf.Variable(0.0, dtype=tf.float64)

  @tf.function
  def step(iterator):
    total.assign_add(1.0)
    return tf.strings.length(tf.strings.as_string(next(iterator)))

  step = tensorflow_staging.ahead(step)
  iterator = iter(data)
  step(iterator), step(iterator)
  with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
    step(iterator)
  assert len([step(iterator) for _ in range(3)]) == 3
  with pytest.raises(tf.errors.OutOfRangeError):
    step(iterator)
