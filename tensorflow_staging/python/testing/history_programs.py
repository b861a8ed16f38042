# SPDX-License-Identifier: Apache-2.0
"""Training programs on one iterator, with and without stages, for `histories_test.py`.

Whatever the way in which a program reads its iterator, the same calls do the same to it, so that a history of calls can
be compared with that of a program without a stage.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from typing import Any
from typing import NamedTuple

import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing import control_flow
from tensorflow_staging.python.testing import smart_stage_sessions

# Much longer than any run takes. One that takes longer raises DeadlineExceededError.
_RUN_MILLIS = 30000

# The label of an element is its number times this.
_LABEL = 10
# The elements of the iterator that an evaluation reads.
_EVALUATED = 9000


class Way(enum.Enum):
  """How a program reads the iterator."""

  UNSTAGED = "unstaged"
  STAGED = "staged"
  SMART_STAGE = "smart_stage"
  BOTH = "both"
  CHAIN = "chain"
  FUNCTION = "function"


class Source(enum.Enum):
  """How the iterator gets its data."""

  PLAIN = "plain"
  FED = "fed"
  # Two initialisers: a plain one, and a fed one in a branch that is taken only if a flag says so.
  STRUCTURE = "structure"
  # The program reads the iterator whose string handle it feeds.
  HANDLE = "handle"


class Settings(NamedTuple):
  """What may differ between a session and the next one, which goes on from its checkpoint."""

  capacity: int = 1
  num_threads: int = 1


@dataclasses.dataclass(frozen=True)
class Case:
  """What stays the same through a history."""

  way: Way
  source: Source
  # How many elements each dataset has.
  count: int = 6
  # Whether the iterator is saved by `tf.staging.save_iterators` or by TensorFlow's own saveable.
  own_saveable: bool = True
  # Whether tf.data itself reads ahead.
  prefetches: bool = False
  # Whether the graph has an initialiser of another type when its saver is made, so that a restore cannot tell which
  # initialiser is meant.
  fails_early: bool = False

  @property
  def initializers(self) -> tuple[str, ...]:
    """The names of the initialisers."""
    return ("first", "second") if self.source is Source.STRUCTURE else ("first",)

  def is_fed(self, initializer: str) -> bool:
    """Whether an initialiser needs feeds, and so can get any data."""
    return self.source is Source.FED or initializer == "second"

  def restore_initialises(self) -> bool:
    """Whether a restore runs the initialiser itself."""
    return self.own_saveable and self.source in (Source.PLAIN, Source.HANDLE) and not self.fails_early

  def elements(self, initializer: str, base: int) -> list[int]:
    """The elements of a dataset. They begin with `base` if it is fed."""
    begin = base if self.is_fed(initializer) else 100
    return list(range(begin, begin + self.count))


# What the steps fetch beside the number of their element.
FETCHES = ("nothing", "label", "element", "summary", "label alone", "element alone")

# What a step may do other than yield a number.
EndOfStep = type[tf.errors.OpError]


class Program:
  """A graph and a session of it."""

  def __init__(self, case: Case, settings: Settings):
    """Builds the graph as a program does that starts, and opens a session.

    Args:
      case: What to build.
      settings: The settings of the stages.
    """
    self.case = case
    self.settings = settings
    self._graph = tf.Graph()
    with self._graph.as_default(), control_flow.version(1):
      self._build()
    config = tf.ConfigProto()
    if case.way in (Way.SMART_STAGE, Way.BOTH):
      config = smart_stage_sessions.smart_stage_config(**settings._asdict())
    config.operation_timeout_in_ms = _RUN_MILLIS
    config.intra_op_parallelism_threads = 2
    config.inter_op_parallelism_threads = 2
    self._sess = tf.Session(graph=self._graph, config=config)
    self._sess.run(self._initialise_variables)
    self._block: contextlib.ExitStack | None = None
    self._step_feeds = {}
    if self._handle is not None:
      handle, self._evaluation_handle = self._sess.run(
          [self._iterator.string_handle(), self._evaluation.string_handle()])
      # A stage is fed the handle itself.
      if case.way in (Way.UNSTAGED, Way.SMART_STAGE):
        self._step_feeds = {self._handle: handle}

  def close(self) -> None:
    """Ends the hook and the session."""
    self.stop()
    self._sess.close()

  @property
  def is_running(self) -> bool:
    """Whether the stages run."""
    return self._block is not None

  def start(self) -> None:
    """Starts the stages."""
    with contextlib.ExitStack() as block:
      if self.case.way is not Way.UNSTAGED:
        block.enter_context(tf.make_prefetch_hook().running(self._sess))
      self._block = block.pop_all()

  def stop(self) -> None:
    """Stops the stages."""
    if self._block is not None:
      self._block.close()
      self._block = None

  def initialise(self, initializer: str, base: int) -> None:
    """Gives the iterator data."""
    self._sess.run(self._initializers[initializer], self._feeds(initializer, base))

  def initialise_in_a_failing_run(self, initializer: str, base: int) -> None:
    """The same, in a run that fails once the initialiser has succeeded."""
    _expect(tf.errors.InvalidArgumentError, lambda: self._sess.run(
        self._failing_runs[initializer], self._feeds(initializer, base)))

  def initialise_with_data_that_do_not_match(self) -> None:
    """Feeds a dataset of two arrays of different length, so that the initialiser does not run."""
    name = self.case.initializers[-1]
    feeds = self._feeds(name, 1) | {self._labels: [1] * (self.case.count + 1)}
    _expect(tf.errors.InvalidArgumentError, lambda: self._sess.run(self._initializers[name], feeds))

  def initialise_with_another_type(self) -> None:
    """Gives the iterator a dataset of another type, so that the initialiser itself fails."""
    _expect(tf.errors.InvalidArgumentError, lambda: self._sess.run(self._of_another_type))

  def leave_the_branch_of_the_initialiser(self) -> None:
    """Runs the graph whose other branch has an initialiser."""
    self._sess.run(self._initializers["second"], self._feeds("second", 1) | {self._flag: False})

  def step(self, fetched: str = "nothing") -> int | EndOfStep:
    """Runs a step.

    Args:
      fetched: One of `FETCHES`.

    Returns:
      The number of the step's element, or the error that says that there is none.
    """
    try:
      results = self._sess.run(self._fetches[fetched], self._step_feeds)
    except (tf.errors.OutOfRangeError, tf.errors.FailedPreconditionError) as error:
      return type(error)
    numbers = [results["number"]] if "number" in results else []
    if "label" in results:
      numbers.append(results["label"] / _LABEL)
    if "element" in results:
      numbers.append(results["element"])
    if "summary" in results:
      numbers.append(tf.Summary.FromString(results["summary"]).value[0].simple_value / _LABEL)
    assert len(set(numbers)) == 1, f"A step has used several elements: {numbers}"
    return int(numbers[0])

  def evaluate(self) -> int:
    """Reads the other iterator by its handle, beside the stages; returns the number of the element."""
    return int(self._sess.run(self._element, {self._handle: self._evaluation_handle})) - _EVALUATED

  def save(self, path: str) -> str | None:
    """Saves a checkpoint; returns its path, or None if the iterator is not initialised."""
    try:
      return self._saver.save(self._sess, path, write_meta_graph=False, write_state=False)
    except tf.errors.FailedPreconditionError:
      return None

  def restore(self, path: str) -> None:
    """Restores a checkpoint."""
    self._saver.restore(self._sess, path)

  def discard(self) -> tuple[int, int]:
    """Drops what waits; returns how many records these were, and how many may have been in the making."""
    # A stage that has just got new data may not have begun its producers yet, so the stages do not know their number.
    producers = len(tf.staging.stats(self._sess)) * self.settings.num_threads
    return tf.staging.discard(self._sess), producers

  def _build(self) -> None:
    case = self.case
    self._values, self._labels = (tf.placeholder(tf.int64, [None]) for _ in range(2))
    self._flag = tf.placeholder(tf.bool, [])
    plain = tf.data.Dataset.range(100, 100 + case.count).map(lambda number: (number, number * _LABEL))
    fed = tf.data.Dataset.from_tensor_slices((self._values, self._labels))
    if case.prefetches:
      plain, fed = plain.prefetch(2), fed.prefetch(2)
    if case.source is Source.STRUCTURE:
      self._iterator = tf.data.Iterator.from_structure(
          tf.data.get_output_types(plain), tf.data.get_output_shapes(plain))
      first = self._iterator.make_initializer(plain)
      self._initializers = {"first": first, "second": tf.cond(
          self._flag, lambda: _after(self._iterator.make_initializer(fed)), lambda: tf.constant(0))}
    else:
      self._iterator = tf.data.make_initializable_iterator(fed if case.source is Source.FED else plain)
      self._initializers = {"first": self._iterator.initializer}
    if case.fails_early:
      self._add_initializer_of_another_type()

    self._handle = None
    read = self._iterator
    if case.source is Source.HANDLE:
      self._handle = tf.placeholder(tf.string, [])
      self._evaluation = tf.data.make_one_shot_iterator(
          tf.data.Dataset.range(_EVALUATED, 2 * _EVALUATED).map(lambda number: (number, number * _LABEL)))
      read = tf.data.Iterator.from_string_handle(
          self._handle, tf.data.get_output_types(plain), tf.data.get_output_shapes(plain))
    get_next = tf.function(lambda: read.get_next()) if case.way is Way.FUNCTION else read.get_next
    self._element, label = get_next()
    number = self._staged(self._element + 1) - 1
    total = tf.get_variable("total", [], tf.int64, initializer=tf.zeros_initializer())
    train = tf.assign_add(total, number)
    summary = tf.summary.scalar("label", tf.cast(label, tf.float32))

    step = {"number": number, "train": train}
    self._fetches: dict[str, dict[str, Any]] = {
        "nothing": step, "label": step | {"label": label}, "element": step | {"element": self._element},
        "summary": step | {"summary": summary}, "label alone": {"label": label},
        "element alone": {"element": self._element}}

    if case.own_saveable:
      tf.staging.save_iterators(self._iterator)
    else:
      tf.add_to_collection(
          tf.GraphKeys.SAVEABLE_OBJECTS, tf.data.experimental.make_saveable_from_iterator(self._iterator))
    self._saver = tf.train.Saver(max_to_keep=None)
    self._initialise_variables = tf.global_variables_initializer()
    if not case.fails_early:
      self._add_initializer_of_another_type()
    self._failing_runs = {}
    for name, initializer in self._initializers.items():
      with tf.control_dependencies([initializer]):
        self._failing_runs[name] = tf.raw_ops.Assert(condition=False, data=["after the initialiser"])

  def _staged(self, number: tf.Tensor) -> tf.Tensor:
    case, settings = self.case, self.settings._asdict()
    if case.way in (Way.UNSTAGED, Way.SMART_STAGE):
      return number
    if self._handle is not None:
      settings["feed_dict"] = {self._handle: self._iterator.string_handle()}
    number = tf.staged(number, **settings)
    return tf.staged(number * 1, capacity=2) if case.way is Way.CHAIN else number

  def _add_initializer_of_another_type(self) -> None:
    self._of_another_type = tf.raw_ops.MakeIterator(
        dataset=tf.data.Dataset.range(3)._variant_tensor, iterator=self._iterator._iterator_resource)

  def _feeds(self, initializer: str, base: int) -> dict[tf.Tensor, Any]:
    if not self.case.is_fed(initializer):
      return {}
    numbers = self.case.elements(initializer, base)
    return {self._values: numbers, self._labels: [number * _LABEL for number in numbers], self._flag: True}


def _after(op: tf.Operation) -> tf.Tensor:
  with tf.control_dependencies([op]):
    return tf.constant(1)


def _expect(error: EndOfStep, run) -> None:
  try:
    run()
  except error:
    return
  raise AssertionError(f"A run that has to fail with {error.__name__} succeeded.")
