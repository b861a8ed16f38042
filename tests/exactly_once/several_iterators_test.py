# SPDX-License-Identifier: Apache-2.0
"""Random histories of programs in which an element of one iterator says which of the others are read.

The stages of such a program read some iterators only now and then, so that a save or a restore meets stages that have
read a part of them. STAGING_REPEATS says how many histories each program has, 2 by default.
"""

import os
import random

import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import control_flow
from tensorflow_staging.python.testing import smart_stage_sessions

_HISTORIES = int(os.environ.get("STAGING_REPEATS", "2"))
_SESSIONS = 3
_EVENTS_PER_SESSION = 14
# As many as a checkpoint has: they do not say of which iterators they are made, so they go with each of them.
_MOST_RECORDS = 8
_COUNT = 40
_FLAGS = [True, True, False, True, False, False, False, True]
_MANY = 10000
_WAYS = ("unstaged", "staged", "smart_stage", "both")


class _Iterators:
  """A program's iterators: of flags, and of the numbers from 0 and from 1000."""

  def __init__(self):
    self.flags = tf.data.make_initializable_iterator(tf.data.Dataset.from_tensor_slices(_FLAGS).repeat())
    self.one, self.other = (
        tf.data.make_initializable_iterator(tf.data.Dataset.range(begin, begin + _COUNT)) for begin in (0, 1000))
    self.all = [self.flags, self.one, self.other]
    self.initializers = [iterator.initializer for iterator in self.all]

  def chosen_handle(self):
    return tf.where_v2(self.flags.get_next(), self.one.string_handle(), self.other.string_handle())


class _Model:
  """The elements that the iterators of a program yield."""

  def __init__(self):
    self.positions = {"flags": 0, "one": 0, "other": 0}

  def flag(self):
    return _FLAGS[self._advance("flags") % len(_FLAGS)]

  def one(self):
    return self._number("one", 0)

  def other(self):
    return self._number("other", 1000)

  def _number(self, name, begin):
    position = self._advance(name)
    if position >= _COUNT:
      raise StopIteration
    return begin + position

  def _advance(self, name):
    position = self.positions[name]
    self.positions[name] += 1
    return position


def _of_handle(handle):
  return tf.data.Iterator.from_string_handle(handle, tf.int64, [])


def _read_after(iterator, before):
  with tf.control_dependencies([before]):
    return iterator.get_next()


def _twice(read, first=0):
  """Returns the numbers of two calls of `read`, which gets the number before as its argument, as one."""
  return tf.while_loop(
      lambda i, _: i < 2, lambda i, number: (i + 1, number * _MANY + read(number)), [0, tf.cast(first, tf.int64)])[1]


# Each program is a function that returns what its steps get, and one that says what that is. The first is given
# what stages a structure, for a stage of its own in a chain.


def _handle(iterators, _):
  return _of_handle(iterators.chosen_handle()).get_next()


def _model_of_handle(model):
  return model.one() if model.flag() else model.other()


def _handle_in_function(iterators, _):
  return tf.function(lambda handle: _of_handle(handle).get_next())(iterators.chosen_handle())


def _handle_in_loop(iterators, _):
  chosen = _of_handle(iterators.chosen_handle())
  return _twice(lambda number: _read_after(chosen, number))


def _model_of_handle_in_loop(model):
  read = model.one if model.flag() else model.other
  first = read()
  return first * _MANY + read()


def _branch(iterators, _):
  flag = iterators.flags.get_next()
  return tf.cond(flag, lambda: _read_after(iterators.one, flag), lambda: _read_after(iterators.other, flag))


def _loop_in_branch(iterators, _):
  flag = iterators.flags.get_next()
  return tf.cond(flag, lambda: _twice(lambda number: _read_after(iterators.one, number)),
                 lambda: _read_after(iterators.other, flag))


def _model_of_loop_in_branch(model):
  if not model.flag():
    return model.other()
  first = model.one()
  return first * _MANY + model.one()


def _branch_in_loop(iterators, _):
  return _twice(
      lambda number: tf.cond(_read_after(iterators.flags, number), lambda: _read_after(iterators.one, number),
                             lambda: _read_after(iterators.other, number)), first=iterators.flags.get_next())


def _model_of_branch_in_loop(model):
  number = int(model.flag())
  for _ in range(2):
    number = number * _MANY + (model.one() if model.flag() else model.other())
  return number


def _chain(iterators, stage):
  flag, number = stage((iterators.flags.get_next(), iterators.one.get_next()))
  return tf.cond(flag, lambda: number * 1, lambda: number + _read_after(iterators.other, flag) * _MANY)


def _model_of_chain(model):
  flag, number = model.flag(), model.one()
  return number if flag else number + model.other() * _MANY


_PROGRAMS = {
    "handle": (_handle, _model_of_handle),
    "handle_in_function": (_handle_in_function, _model_of_handle),
    "handle_in_loop": (_handle_in_loop, _model_of_handle_in_loop),
    "branch": (_branch, _model_of_handle),
    "loop_in_branch": (_loop_in_branch, _model_of_loop_in_branch),
    "branch_in_loop": (_branch_in_loop, _model_of_branch_in_loop),
    "chain": (_chain, _model_of_chain),
}


class _History:
  """What a program does in several sessions, drawn at random."""

  def __init__(self, program, way, seed, folder):
    self._build, self._next = _PROGRAMS[program]
    self._way = way
    self._draw = random.Random(f"{program} {seed}")
    self._control_flow = 1 + seed % 2
    self._folder = folder
    self._checkpoints = []
    # For the message of a failure.
    self._events = []

  def run(self):
    for number in range(_SESSIONS):
      capacity = self._draw.choice([1, 2, 3, 6])
      self._events = [f"session {number}, capacity {capacity}"]
      with tf.Graph().as_default(), control_flow.version(self._control_flow):
        self._begin(capacity)
        config = smart_stage_sessions.smart_stage_config(capacity=capacity) if self._is_smart() else tf.ConfigProto()
        config.operation_timeout_in_ms = 20000
        with tf.Session(config=config) as self._sess:
          self._run_session(is_first=number == 0)

  def _is_smart(self):
    return self._way in ("smart_stage", "both")

  def _begin(self, capacity):
    def stage(features):
      return tf.staged(features, capacity=capacity) if self._way in ("staged", "both") else features

    iterators = _Iterators()
    self._number = stage(self._build(iterators, stage))
    self._initializers = iterators.initializers
    tf.staging.save_iterators(*iterators.all)
    self._saver = tf.train.Saver(tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS), max_to_keep=None)
    self._model = _Model()
    self._steps_since_restore = _MOST_RECORDS + 1

  def _run_session(self, *, is_first):
    self._sess.run(self._initializers)
    restores_early = not is_first and self._draw.random() < 0.5
    if restores_early:
      self._restore()
    with tf.make_prefetch_hook().running(self._sess):
      if not is_first and not restores_early:
        self._steps(self._draw.randrange(3))
        self._restore()
      for _ in range(_EVENTS_PER_SESSION):
        event = self._draw.random()
        if event < 0.25:
          self._save()
        elif event < 0.33 and self._checkpoints:
          self._restore()
        elif event < 0.38:
          self._initialise()
        elif event < 0.46 and self._steps_since_restore > _MOST_RECORDS:
          self._initialise_one()
        else:
          self._steps(self._draw.randrange(1, 4))
      if not self._checkpoints:
        self._save()

  def _steps(self, count):
    for _ in range(count):
      self._steps_since_restore += 1
      try:
        expected = self._next(self._model)
      except StopIteration:
        with pytest.raises(tf.errors.OutOfRangeError):
          self._sess.run(self._number)
        self._initialise()
        return
      self._events.append(f"step {expected}")
      assert self._sess.run(self._number) == expected, self._events

  def _initialise(self):
    self._events.append("initialise")
    self._sess.run(self._initializers)
    # Until the first step after a restore, an initialiser changes nothing.
    if self._steps_since_restore:
      self._model = _Model()

  def _initialise_one(self):
    # The stages keep what they have read of the others.
    name, initializer = self._draw.choice(list(zip(self._model.positions, self._initializers)))
    self._events.append(f"initialise {name}")
    self._sess.run(initializer)
    self._model.positions[name] = 0

  def _save(self):
    path = self._saver.save(self._sess, f"{self._folder}/{len(self._checkpoints)}")
    self._checkpoints.append((path, dict(self._model.positions)))
    self._events.append("save")

  def _restore(self):
    path, positions = self._draw.choice(self._checkpoints[-3:])
    self._events.append(f"restore {positions}")
    self._saver.restore(self._sess, path)
    self._model.positions = dict(positions)
    self._steps_since_restore = 0


@pytest.mark.timeout(60 + 10 * _HISTORIES)
@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("program", _PROGRAMS)
def test_steps_get_what_the_iterators_yield(program, way, tmp_path):
  for seed in range(_HISTORIES):
    _History(program, way, seed, tmp_path).run()
