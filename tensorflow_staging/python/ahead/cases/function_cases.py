# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.ahead` takes the steps that `tf.function` takes, and trains as it does; run by ahead/ahead_test.py."""

import copy
import functools
import gc
import inspect
import logging
import threading
import weakref
from unittest import mock

import cases
import tensorflow as tf

from tensorflow_staging.python.ahead import dataset_state
from tensorflow_staging.python.api_name import API

WORDS = ["a", "b", "c", "a", "q"]


def plain(step):
  return step


def staged(step):
  return tf.staging.ahead(step, capacity=3)


def words():
  return tf.data.Dataset.from_tensor_slices(WORDS).batch(1)


def weights():
  return tf.Variable(tf.zeros([5]))


def train(weight, iterator, factor=1):
  """The body of all steps: what it hashes runs ahead."""
  ids = tf.strings.to_hash_bucket_fast(next(iterator), 5)
  weight.scatter_add(tf.IndexedSlices(tf.ones_like(ids, tf.float32) * tf.cast(factor, tf.float32), ids))
  return tf.identity(weight)


def epochs(call, number=2):
  """Calls a step until its data ends, several times; returns what it has returned."""
  values = []
  for _ in range(number):
    iterator = iter(words())
    try:
      while True:
        values.append(tf.nest.map_structure(lambda t: t.numpy().tolist(), call(iterator)))
    except (tf.errors.OutOfRangeError, StopIteration):
      values.append("end")
  return values


def compare(program):
  """Runs a program (wrap -> (what calls the step, the wrapped step)) without and with a stage."""
  call, _ = program(plain)
  expected = epochs(call)
  call, step = program(staged)
  got = epochs(call)
  assert got == expected, f"{got} != {expected}"
  assert step.why_not is None, step.why_not
  assert step.counts().buffer["taken"] > 0


def trainer(wrap, **options):
  """Returns a new class whose step is a method."""

  class Trainer:

    def __init__(self):
      self.weight = weights()

    @wrap
    @tf.function(**options)
    def step(self, iterator, factor=1):
      """Trains."""
      return train(self.weight, iterator, factor)

  return Trainer


def case_methods():
  def called(call_of):
    def program(wrap):
      owner = trainer(wrap)()
      return functools.partial(call_of, owner), owner.step
    compare(program)

  called(lambda owner, iterator: owner.step(iterator))
  called(lambda owner, iterator: owner.step(iterator, 2))
  called(lambda owner, iterator: owner.step(factor=tf.constant(2.0), iterator=iterator))


def case_a_method_that_the_class_gives():
  def program(wrap):
    owner = trainer(wrap)()
    step = type(owner).step
    return functools.partial(step, owner), step

  compare(program)


def case_a_method_of_the_class_above():
  def program(wrap):
    class Below(trainer(wrap)):

      def step(self, iterator, factor=3):
        return super().step(iterator, factor)

    owner = Below()
    return owner.step, super(Below, owner).step

  compare(program)


def case_methods_of_classes_and_static_methods():
  class Shared:
    weight = weights()

    @classmethod
    @staged
    @tf.function
    def of_class(cls, iterator):
      return train(cls.weight, iterator)

    @staticmethod
    @staged
    @tf.function
    def static(weight, iterator):
      return train(weight, iterator)

    @staged
    @staticmethod
    @tf.function
    def static_below(weight, iterator):
      return train(weight, iterator)

  expected = epochs(functools.partial(tf.function(train), weights()))
  assert epochs(Shared.of_class) == expected
  for step in (Shared.static, Shared().static, Shared.static_below, Shared().static_below):
    assert epochs(functools.partial(step, weights())) == expected
  for step in (Shared.of_class, Shared.static, Shared.static_below):
    assert step.why_not is None and step.counts().buffer["taken"] > 0, step.why_not


def case_callable_objects_and_modules():
  def program(wrap):
    class Module(tf.Module):

      def __init__(self):
        super().__init__()
        self.weight = weights()

      @wrap
      @tf.function
      def __call__(self, iterator):
        return train(self.weight, iterator)

    owner = Module()
    return owner, type(owner).__call__.__get__(owner, Module)

  compare(program)


def case_each_object_has_its_step_and_ends_with_it():
  owner_type = trainer(staged)
  first, second = owner_type(), owner_type()
  assert first.step is first.step and first.step is not second.step
  iterator = iter(words())
  assert first.step(iterator).numpy().sum() == 1
  assert second.step(iterator).numpy().sum() == 1
  assert first.step(iterator).numpy().sum() == 2
  references = [weakref.ref(first), weakref.ref(first.step)]
  del first
  gc.collect()
  assert [reference() for reference in references] == [None, None]
  assert second.step(iterator).numpy().sum() == 2


def case_a_method_that_is_no_traced_function_is_told_once():
  class Eager:

    @staged
    def step(self, iterator):
      return tf.strings.length(next(iterator))

  lines = []
  with mock.patch.object(Eager.__dict__["step"], "_warn", lines.append):
    owner = Eager()
    epochs(owner.step)
    epochs(owner.step)
  assert len(lines) == 1 and "it is no tf.function" in lines[0], lines


def case_bound_arguments():
  def of_partial(wrap):
    step = wrap(functools.partial(tf.function(train), weights(), factor=2))
    return step, step

  def of_function_of_partial(wrap):
    step = wrap(tf.function(functools.partial(train, weights(), factor=2)))
    return step, step

  owners = []

  def of_bound_method(wrap):
    owner = trainer(plain)()
    owners.append(owner)
    step = wrap(functools.partial(owner.step, factor=tf.constant(3)))
    return step, step

  for program in (of_partial, of_function_of_partial, of_bound_method):
    compare(program)


def case_an_iterator_that_is_bound():
  def run(wrap):
    step = wrap(functools.partial(tf.function(train), weights(), iter(words())))
    return [step().numpy().tolist() for _ in WORDS], step

  expected, _ = run(plain)
  got, step = run(staged)
  assert got == expected and step.why_not is None, step.why_not


def case_signatures_and_traces_that_serve_several_shapes():
  def signed(wrap):
    signature = [tf.TensorSpec([], tf.float32), iter(words())._type_spec]
    weight = weights()
    step = wrap(tf.function(lambda factor, iterator: train(weight, iterator, factor), input_signature=signature))
    return functools.partial(step, 2), step

  def relaxed(wrap):
    owner = trainer(wrap, reduce_retracing=True)()
    calls = iter(range(1, 100))
    return lambda iterator: owner.step(iterator, tf.ones([next(calls) % 3 + 1])[0]), owner.step

  compare(signed)
  compare(relaxed)


def case_concrete_functions():
  def of_iterator(wrap):
    weight = weights()
    step = wrap(tf.function(lambda iterator: train(weight, iterator)).get_concrete_function(iter(words())))
    return step, step

  def with_a_tensor(wrap):
    weight = weights()
    step = wrap(tf.function(lambda iterator, factor: train(weight, iterator, factor)).get_concrete_function(
        iter(words()), tf.TensorSpec([], tf.float32)))
    return functools.partial(step, factor=tf.constant(2.0)), step

  compare(of_iterator)
  compare(with_a_tensor)


def case_a_step_whose_variable_python_has_deleted():
  def traced():
    weight = weights()
    return tf.function(lambda iterator: train(weight, iterator)).get_concrete_function(iter(words()))

  def program(wrap):
    step = wrap(traced())
    gc.collect()
    return step, step

  compare(program)


def case_a_concrete_function_of_other_arguments_says_so():
  step = staged(tf.function(lambda iterator, factor: next(iterator)).get_concrete_function(
      iter(words()), tf.TensorSpec([], tf.float32)))
  try:
    step(iter(words()))
  except TypeError as error:
    assert "missing a required argument: 'factor'" in str(error), error
  assert step.why_not == "it is a ConcreteFunction of other arguments", step.why_not


def case_attributes_are_those_of_the_step():
  step = trainer(staged).step
  assert (step.__name__, step.__doc__, step.__module__) == ("step", "Trains.", __name__)
  assert step.__qualname__.endswith("Trainer.step"), step.__qualname__
  assert str(inspect.signature(step)) == "(self, iterator, factor=1)"
  owner = trainer(staged)()
  assert str(inspect.signature(owner.step)) == "(iterator, factor=1)"
  epochs(owner.step, 1)
  assert owner.step.experimental_get_tracing_count() == 1
  assert step.input_signature is None and step.python_function is step.step.python_function
  try:
    step.missing  # noqa: B018
  except AttributeError as error:
    assert "no attribute 'missing'" in str(error)
  else:
    raise AssertionError("An attribute that is nowhere was found.")


def case_copies_of_a_step_have_stages_of_their_own():
  step = tf.staging.ahead(lambda iterator: next(iterator), capacity=3, name="n")
  for copied in (copy.copy(step), copy.deepcopy(step)):
    assert copied is not step and copied.step is step.step and copied._options == step._options


def case_what_cannot_be_a_step_is_refused():
  step = staged(tf.function(train))
  for value, expected in (
      (functools.partial(step, 1), f"got 'train', which {API}.ahead has returned"),
      (classmethod(train), f"of type classmethod. Put @classmethod above @{API}.ahead."),
      (3, "step must be a tf.function, got 3 of type int.")):
    try:
      tf.staging.ahead(value)
    except TypeError as error:
      assert expected in str(error), error
    else:
      raise AssertionError(f"{value} was taken.")


class Normalization(tf.Module):
  """Its variable begins with the mean of what the first call is given."""

  def __init__(self):
    super().__init__()
    self.mean = None

  def __call__(self, x):
    if self.mean is None:
      self.mean = tf.Variable(tf.reduce_mean(x))
    return x - self.mean


def case_the_first_call_makes_variables_from_the_data():
  def body(normalize, iterator, factor):
    x = tf.cast(tf.strings.to_hash_bucket_fast(next(iterator), 5), tf.float32)
    normalize.mean.assign_add(tf.reduce_sum(normalize(x))) if normalize.mean is not None else normalize(x)
    return normalize.mean.read_value() + factor

  def of_function(wrap):
    step = wrap(tf.function(functools.partial(body, Normalization(), factor=1.0)))
    return step, step

  def with_argument(wrap):
    step = wrap(tf.function(functools.partial(body, Normalization()), reduce_retracing=True))
    return lambda iterator: step(iterator, factor=tf.constant(2.0)), step

  def nested(wrap):
    inner = tf.function(Normalization())

    @tf.function
    def step(iterator):
      return inner(tf.cast(tf.strings.to_hash_bucket_fast(next(iterator), 5), tf.float32))

    step = wrap(step)
    return step, step

  def with_draws(wrap):
    tf.random.set_seed(3)
    normalize = Normalization()

    @tf.function
    def step(iterator):
      x = tf.cast(tf.strings.to_hash_bucket_fast(next(iterator), 5), tf.float32)
      return normalize(x + tf.random.uniform([], seed=4))

    step = wrap(step)
    return step, step

  for program in (of_function, with_argument, nested, with_draws):
    compare(program)


def case_the_first_call_reads_nothing_ahead_that_is_not_used():
  step = staged(tf.function(Reading(Normalization())))
  taken = []

  def rows():
    for i in range(10):
      taken.append(i)
      yield i

  iterator = iter(tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([], tf.int64)).with_options(
      without_prefetch()))
  step.expect(3)
  for _ in range(3):
    step(iterator)
  assert len(taken) == 3, taken


def case_a_step_that_replaces_another_makes_variables_in_its_first_call():
  def program(wrap):
    step = wrap(tf.function(Reading(tf.identity)))
    iterator = iter(tf.data.Dataset.range(8))
    values = [step(iterator) for _ in range(3)]
    other = tf.function(Reading(Normalization()))
    if wrap is plain:
      step = other
    else:
      step.replace_step(other)
    values += [step(iterator) for _ in range(5)]
    return [float(value) for value in values], step

  expected, _ = program(plain)
  got, step = program(staged)
  assert got == expected and step.why_not is None, (got, expected, step.why_not)


class Reading:
  """Calls a function with what an iterator has."""

  def __init__(self, function):
    self._function = function

  def __call__(self, iterator):
    text = tf.strings.as_string(next(iterator))
    return self._function(tf.cast(tf.strings.to_hash_bucket_fast(text, 5), tf.float32))


def without_prefetch():
  options = tf.data.Options()
  options.experimental_optimization.inject_prefetch = False
  options.autotune.enabled = False
  return options


def case_the_first_call_of_a_step_that_xla_compiles_raises_as_without_a_stage():
  for wrap in (plain, staged):
    normalize = Normalization()
    step = wrap(tf.function(lambda iterator, normalize=normalize: normalize(next(iterator)), jit_compile=True))
    try:
      step(iter(tf.data.Dataset.from_tensors(1.0).repeat()))
    except tf.errors.UnimplementedError:
      continue
    raise AssertionError("XLA has compiled it.")


def case_a_call_does_not_visit_the_datasets_again():
  owner = trainer(staged)()
  iterator = iter(words().repeat())
  visits = mock.Mock(side_effect=dataset_state._functions)
  with mock.patch.object(dataset_state, "_functions", visits):
    owner.step(iterator, tf.constant(1.0))
    visits.reset_mock()
    for _ in range(10):
      owner.step(iterator, tf.constant(1.0))
  assert owner.step.why_not is None and visits.call_count <= 1, (owner.step.why_not, visits.call_count)


def case_data_of_one_element_has_no_stage_and_no_warning():
  def program(wrap):
    owner = trainer(wrap)()
    return [owner.step(iter(tf.data.Dataset.from_tensors(["a", "b"]))).numpy().tolist() for _ in range(4)], owner.step

  lines = []
  expected, _ = program(plain)
  threads = threading.active_count()
  with mock.patch.object(logging.getLogger("tensorflow"), "warning", lines.append):
    got, step = program(staged)
  assert got == expected and step.counts() is None and threading.active_count() == threads
  assert "one element" in step.why_not and not lines, (step.why_not, lines)
  assert "run ahead" in str(tf.staging.explain(step))


def case_a_lookup_runs_ahead_although_a_call_before_it_has_the_same_table():
  table = tf.lookup.StaticHashTable(
      tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b", "c"]), tf.range(3, dtype=tf.int64)), 3)

  def program(wrap):
    weight = weights()

    @tf.function
    def layer(keys):
      return tf.gather(weight, table.lookup(keys))

    @wrap
    @tf.function
    def step(iterator):
      keys = next(iterator)
      value = layer(keys)
      ids = table.lookup(tf.strings.lower(keys))
      weight.scatter_add(tf.IndexedSlices(tf.ones_like(ids, tf.float32), ids))
      return value

    steps.append(step)
    return step, step

  steps = []
  compare(program)
  explained, = tf.staging.explain(steps[-1]).steps
  assert sum(node.endswith("LookupTableFindV2") for node in explained.nodes) == 2, explained.nodes


def case_asynchronous_execution():
  def run(wrap, *is_synchronous):
    owner, values = trainer(wrap)(), []
    iterator = iter(words().repeat())
    try:
      for mode in is_synchronous:
        tf.config.experimental.set_synchronous_execution(mode)
        values.append(owner.step(iterator).numpy().tolist())
    finally:
      tf.config.experimental.set_synchronous_execution(True)
    return values, owner.step

  for modes in ([False] * 5, [True, True, False, False, True], [False, True, True]):
    expected, _ = run(plain, *modes)
    got, step = run(staged, *modes)
    assert got == expected, f"{got} != {expected}"
    assert (step.why_not is None) == modes[-1] and any("asynchronously" in why for why in step._told), step.why_not


if __name__ == "__main__":
  cases.main(globals())
