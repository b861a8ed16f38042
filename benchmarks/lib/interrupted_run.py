# SPDX-License-Identifier: Apache-2.0
"""Takes numbered records from a stage that is interrupted again and again, and keeps account of each of them."""

from __future__ import annotations

import contextlib
import pathlib
import random
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

_CAPACITY = 64
# About one record, and one step, in so many takes up to 3 milliseconds longer.
_RECORDS_PER_DELAY = 997
_STEPS_PER_DELAY = 1009
_LONGEST_STEP_SECONDS = 0.003
# How long a consumer waits before it tries again to take a record while the stage is stopped, and how often the
# progress of the consumers is looked at.
_RETRY_SECONDS = 0.001
_LARGEST_PAYLOAD = 4096


class Setting(NamedTuple):
  """How the records go: through which kind of stage, how many producers, and how many threads that take them."""

  smart_stage: bool
  producers: int
  consumers: int

  @property
  def stage(self) -> str:
    return "SmartStage" if self.smart_stage else "`tf.staged`"


class Account(NamedTuple):
  """What was taken, what went wrong, and what happened meanwhile."""

  # Records.
  taken: int = 0
  # Not taken, although their data was not given up.
  lost: int = 0
  # How many times a record was taken again.
  repeated: int = 0
  # Taken after their data had been given up, by a step that began later; with one producer and one consumer, also those
  # that came before an earlier one.
  misplaced: int = 0
  # Not taken, because the iterator was initialised for other data before it had reached the end.
  given_up: int = 0
  # Events.
  initialisations: int = 0
  restarts: int = 0
  checkpoints: int = 0

  def plus(self, other: Account) -> Account:
    return Account(*map(sum, zip(self, other, strict=True)))

  @property
  def faultless(self) -> bool:
    return self.lost == self.repeated == self.misplaced == 0


class InterruptedRun:
  """A graph with a stage, its current session, and threads that take records.

  The stage is interrupted while the threads are taking records, in three ways:
    restart         the stage stops and starts again in its session;
    checkpoint      a checkpoint is saved, and another session goes on from it;
    initialisation  the iterator is initialised for other data; what it has not yielded so far is given up.
  """

  def __init__(self, setting: Setting, folder: pathlib.Path, seed: int = 0, payload: bool = False):
    """Builds the graph.

    Args:
      setting: The stage.
      folder: Where to keep the checkpoint.
      seed: Of the moments and kinds of interruptions.
      payload: Whether each record also has a tensor of up to 32 KiB.
    """
    self._setting = setting
    self._chance = random.Random(seed)
    self._model = str(folder / "model")
    self._hook = tf.make_prefetch_hook()
    self._build(payload)
    self._lock = threading.Lock()
    # How often the iterator was initialised; odd during an initialisation.
    self._generation = 0  # Guarded by _lock.
    self._ended = False  # Guarded by _lock.
    # The least number that a step which begins now may find.
    self._least = 0
    self._pause = threading.Event()
    self._errors: list[BaseException] = []

  @contextlib.contextmanager
  def running(self, begin: int, end: int) -> Iterator[InterruptedRun]:
    """Opens a session whose data are the numbers from `begin` to `end` - 1, and closes the last session at the end."""
    self._open((begin, end), restore=False)
    try:
      yield self
    finally:
      self._close()

  @property
  def session(self) -> tf.compat.v1.Session:
    return self._session

  def epoch(self, begin: int, middle: int, end: int, interruptions: int) -> tuple[int, Account]:
    """Takes all records to the end of the data.

    Args:
      begin: The first number.
      middle: An initialisation changes from data that end before this number to those that begin with it.
      end: The number after the last one.
      interruptions: How often to interrupt the stage, if the data do not end before.

    Returns:
      `end`, or `middle` if the data ended without an initialisation; and the account of the records before it.

    Raises:
      tf.errors.OpError: If a step fails otherwise than by the end of the data or a stopped stage.
    """
    self._ended = False
    self._initialise(begin, middle)
    taken: list[list[int]] = [[] for _ in range(self._setting.consumers)]
    account = Account(initialisations=1)
    data = begin, middle
    moments = sorted(self._chance.random() * 0.8 for _ in range(interruptions))
    consumers = self._start_consumers(taken)
    for i, moment in enumerate(moments):
      self._await(taken, moment * (middle - begin))
      kinds = ["restart", "checkpoint"] + ["initialisation"] * (i == len(moments) - 1)
      kind = self._chance.choice(kinds)
      if kind == "restart":
        self._restart()
        account = account.plus(Account(restarts=1))
      elif kind == "checkpoint":
        self._join(consumers)
        self._continue_from_checkpoint(data)
        consumers = self._start_consumers(taken)
        account = account.plus(Account(checkpoints=1))
      elif self._initialise(middle, end):
        data = middle, end
        account = account.plus(Account(initialisations=1))
    for consumer in consumers:
      consumer.join()
    if self._errors:
      raise self._errors[0]
    given_up = middle if data[0] == middle else begin
    in_order = self._setting.producers == self._setting.consumers == 1
    return data[1], account.plus(account_of(taken, begin, given_up, data[1], in_order))

  def _build(self, payload: bool) -> None:
    self._graph = tf.Graph()
    with self._graph.as_default():
      self._range = [tf.compat.v1.placeholder(tf.int64, []) for _ in range(2)]
      self._iterator = tf.compat.v1.data.make_initializable_iterator(tf.data.Dataset.range(*self._range))
      number = _sometimes_late(self._iterator.get_next())
      record = {"number": number}
      if payload:
        record["payload"] = tf.fill([1 + number * 7919 % _LARGEST_PAYLOAD], number)
      if not self._setting.smart_stage:
        record = tf.staged(record, capacity=_CAPACITY, num_threads=self._setting.producers)
      # A variable keeps this sum in the step.
      step = record["number"] + tf.compat.v1.get_variable("zero", initializer=np.int64(0), use_resource=True)
      if payload:
        with tf.control_dependencies([tf.compat.v1.assert_equal(record["payload"], step)]):
          step = tf.identity(step)
      self._step = step
      tf.staging.save_iterators(self._iterator)
      self._saver = tf.compat.v1.train.Saver(max_to_keep=1)
      self._variables = tf.compat.v1.global_variables_initializer()

  def _open(self, data: tuple[int, int], restore: bool) -> None:
    config = tf.compat.v1.ConfigProto()
    if self._setting.smart_stage:
      config.graph_options.optimizer_options.do_smart_stage = True
      config.graph_options.optimizer_options.smart_stage_options.CopyFrom(
          tf.SmartStageOptions(capacity=_CAPACITY, num_threads=self._setting.producers))
    self._session = tf.compat.v1.Session(graph=self._graph, config=config)
    self._take = self._session.make_callable(self._step)
    if restore:
      self._saver.restore(self._session, self._model)
    else:
      self._session.run(self._variables)
    self._session.run(self._iterator.initializer, dict(zip(self._range, data, strict=True)))
    self._hook.after_create_session(self._session)
    if not tf.staging.stats(self._session):
      raise RuntimeError(f"The session has no stage: {self._setting}")

  def _close(self) -> None:
    self._hook.end(self._session)
    self._session.close()

  def _initialise(self, begin: int, end: int) -> bool:
    """Gives up the data that are left, and begins with others, unless the data have come to their end."""
    with self._lock:
      if self._ended:
        return False
      self._generation += 1
    self._session.run(self._iterator.initializer, dict(zip(self._range, (begin, end), strict=True)))
    with self._lock:
      self._generation += 1
      self._least = begin
    return True

  def _restart(self) -> None:
    self._hook.end(self._session)
    self._hook.after_create_session(self._session)

  def _continue_from_checkpoint(self, data: tuple[int, int]) -> None:
    self._saver.save(self._session, self._model, write_meta_graph=False)
    self._close()
    self._open(data, restore=True)

  def _start_consumers(self, taken: list[list[int]]) -> list[threading.Thread]:
    consumers = [threading.Thread(target=self._run_consumer, args=[numbers]) for numbers in taken]
    for consumer in consumers:
      consumer.start()
    return consumers

  def _join(self, consumers: list[threading.Thread]) -> None:
    """Lets the consumers leave after their current steps."""
    self._pause.set()
    for consumer in consumers:
      consumer.join()
    self._pause.clear()

  def _await(self, taken: list[list[int]], count: float) -> None:
    """Waits until the consumers have taken so many records, or the data have ended."""
    while sum(map(len, taken)) < count and not self._ended:
      time.sleep(_RETRY_SECONDS)

  def _run_consumer(self, taken: list[int]) -> None:
    chance = random.Random(len(taken))
    try:
      while not self._ended and not self._pause.is_set():
        self._take_record(taken)
        if chance.randrange(_STEPS_PER_DELAY) == 0:
          time.sleep(chance.random() * _LONGEST_STEP_SECONDS)
    except BaseException as error:
      self._errors.append(error)
      self._ended = True

  def _take_record(self, taken: list[int]) -> None:
    generation, least = self._generation, self._least
    try:
      number = int(self._take())
    except tf.errors.OutOfRangeError:
      with self._lock:
        # Unless the end was that of data which are given up.
        if generation == self._generation and generation % 2 == 0:
          self._ended = True
    except tf.errors.CancelledError:
      time.sleep(_RETRY_SECONDS)  # The stage is stopped, and will start again.
    else:
      taken.append(number if number >= least else ~number)


def account_of(taken: list[list[int]], begin: int, given_up: int, end: int, in_order: bool) -> Account:
  """Compares what was taken with the numbers from `begin` to `end` - 1.

  Args:
    taken: The numbers that each consumer has taken, in order; ~number for one that came too late.
    begin: The first number.
    given_up: The numbers before this one may be missing.
    end: The number after the last one.
    in_order: Whether the first consumer has to take the numbers in order.
  """
  numbers = np.concatenate([np.array(part, np.int64) for part in taken])
  late = numbers < 0
  numbers = np.where(late, ~numbers, numbers)
  outside = (numbers < begin) | (numbers >= end)
  misplaced = int((late | outside).sum())
  if in_order:
    misplaced += int((np.diff(taken[0]) < 0).sum())
  times = np.bincount(numbers[~outside] - begin, minlength=end - begin)
  missing = times == 0
  return Account(
      taken=len(numbers), lost=int(missing[given_up - begin:].sum()), repeated=int((times[times > 1] - 1).sum()),
      misplaced=misplaced, given_up=int(missing[:given_up - begin].sum()))


def _sometimes_late(number: tf.Tensor) -> tf.Tensor:
  """Returns the number, about once in `_RECORDS_PER_DELAY` times after a computation of up to some milliseconds."""
  scattered = number * 2654435761 % (_RECORDS_PER_DELAY * 64)

  def late() -> tf.Tensor:
    side = tf.cast(scattered // _RECORDS_PER_DELAY * 4 + 8, tf.int32)
    ones = tf.ones([side, side])
    return number + tf.cast(tf.reduce_min(tf.matmul(ones, ones)) * 0, tf.int64)

  return tf.cond(tf.equal(scattered % _RECORDS_PER_DELAY, 0), late, lambda: tf.identity(number))
