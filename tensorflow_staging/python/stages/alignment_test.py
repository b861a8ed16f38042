# SPDX-License-Identifier: Apache-2.0
"""A step uses one element of a source that a stage reads, whatever else of the graph uses the source."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from tensorflow_staging.python.testing import control_flow
from tensorflow_staging.python.testing import test_util

# How a program runs: without a stage, with tf.staged, and with SmartStage, too.
_MODES = ("plain", "staged", "both")


def _pairs(count=40):
  """Returns features of varying sizes, and the number of the element."""
  dataset = tf.data.Dataset.range(count).map(lambda i: (tf.fill([1 + i % 3], i), i))
  return tf.data.make_one_shot_iterator(dataset).get_next()


def _config(mode):
  return tf.staging.smart_stage_config() if mode == "both" else tf.ConfigProto()


def _stage(features, mode, **kwargs):
  return features if mode == "plain" else tf.staged(features, capacity=2, **kwargs)


def _values(value):
  """Returns a fetched value as Python objects that compare."""
  return tf.nest.map_structure(lambda v: v.tolist() if isinstance(v, np.ndarray) else v, value)


def _run(mode, fetches, steps=6, initializers=()):
  """Returns what the first steps fetch; `fetches` may be a list of fetches, for one step after the other."""
  with tf.Session(config=_config(mode)) as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
    sess.run(list(initializers))
    if mode == "plain":
      return [_values(sess.run(fetches)) for _ in range(steps)]
    with tf.make_prefetch_hook().running(sess):
      return [_values(sess.run(fetches)) for _ in range(steps)]


def _assert_alike(build, steps=6):
  """Checks that the steps of a program fetch the same in each mode. `build` gets `stage` and returns the fetches."""
  found = {}
  for mode in _MODES:
    with tf.Graph().as_default():
      built = build(lambda features, mode=mode, **kwargs: _stage(features, mode, **kwargs))
      fetches, initializers = built if isinstance(built, tuple) else (built, ())
      found[mode] = _run(mode, fetches, steps, initializers)
  assert found["staged"] == found["plain"]
  assert found["both"] == found["plain"]
  return found["plain"]


def _train(*values):
  """Returns the fetches of a step that also updates a variable by what it uses."""
  total = tf.get_variable("total", [], dtype=tf.int64, initializer=tf.zeros_initializer())
  used = [tf.reduce_sum(tf.cast(value, tf.int64)) for value in values]
  return list(values) + [tf.assign_add(total, tf.add_n(used))]


def test_the_label_beside_the_stage():
  def build(stage):
    features, label = _pairs()
    staged = stage(tf.as_string(features))
    return _train(tf.strings.to_number(staged, tf.int64), label)

  steps = _assert_alike(build)
  assert [step[1] for step in steps] == list(range(6))


@pytest.mark.parametrize("fetched", [False, True])
def test_the_other_result_of_a_map_fn(fetched):
  """In control flow of version 1, each result is read from a TensorArray, which lives in one run."""

  def build(stage):
    with control_flow.version(1):
      _, number = _pairs()
      decoded, other = tf.map_fn(
          lambda n: (n * 2, n + 1000), tf.fill([2], number), dtype=(tf.int64, tf.int64))
    staged = stage(decoded)
    return [staged, other] if fetched else _train(staged, other * 1)

  steps = _assert_alike(build)
  assert [step[1] for step in steps] == [[1000 + i] * 2 for i in range(6)]


@pytest.mark.parametrize("reads_at", ["a variable", "the record", "a loop's counter"])
def test_an_array_that_the_stage_and_the_step_read(reads_at):
  """The step cannot read ahead at a place that it knows later, so it fills an array of its own."""

  def build(stage):
    with control_flow.version(1):
      _, number = _pairs()
      array = tf.TensorArray(tf.int64, 2, clear_after_read=False, element_shape=[])
      array = array.unstack(tf.stack([number, number + 1000]))
      staged = stage(array.read(0))
      if reads_at == "a variable":
        place = tf.get_variable("place", initializer=1)
        other = array.read(place)
      elif reads_at == "the record":
        other = array.read(tf.cast(staged * 0 + 1, tf.int32))
      else:
        _, other = tf.while_loop(
            lambda i, total: i < 2, lambda i, total: (i + 1, total + array.identity().read(i) + staged * 0),
            [0, tf.constant(0, tf.int64)])
        other -= staged
    return _train(staged, other)

  steps = _assert_alike(build)
  assert [step[1] for step in steps] == [1000 + i for i in range(6)]


def test_an_array_of_draws_that_the_step_reads_later():
  with control_flow.version(1):
    iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(40))
    _, array = tf.while_loop(
        lambda i, _: i < 2, lambda i, array: (i + 1, array.write(i, iterator.get_next())),
        [0, tf.TensorArray(tf.int64, 2, clear_after_read=False, element_shape=[])])
    staged = tf.staged(array.read(0), capacity=2)
    other = array.read(tf.get_variable("place", initializer=1))
  with pytest.raises(tf.errors.FailedPreconditionError, match="records do not carry it.*give it to tf.staged"):
    _run("staged", [staged, other])


def test_the_size_of_a_raw_feature():
  def build(stage):
    features, _ = _pairs()
    size = tf.size(features)
    return _train(stage(features * 2), size)

  _assert_alike(build)


def test_a_heavy_label_beside_the_stage():
  def build(stage):
    features, label = _pairs()
    staged = stage(features * 2)
    label = tf.strings.to_number(tf.strings.join([tf.as_string(label), "7"]), tf.int64)
    return _train(staged, label, staged + label)

  _assert_alike(build)


def test_two_stages_on_one_source():
  def build(stage):
    features, label = _pairs()
    return _train(stage(features * 2), stage(label + 1), features)

  _assert_alike(build, steps=12)


def test_four_stages_on_one_source_and_their_raw_tensors():
  def build(stage):
    features, label = _pairs()
    staged = [stage(label + i) for i in range(4)]
    return _train(*staged, label, features, stage(staged[0] * 2))

  _assert_alike(build, steps=12)


def test_a_chain_and_each_of_its_parts():
  def build(stage):
    features, label = _pairs()
    first = stage(features * 2)
    second = stage(first + 1)
    return _train(second, first, label, features)

  _assert_alike(build, steps=12)


def test_a_nested_structure_of_which_a_part_is_staged():
  def build(stage):
    dataset = tf.data.Dataset.range(30).map(
        lambda i: {"a": {"x": i, "y": [i + 1, i + 2]}, "label": (i, tf.as_string(i))})
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    staged = stage(element["a"])
    return [*_train(staged["x"], staged["y"], element["label"][0]), element["label"][1], element]

  _assert_alike(build)


def test_sparse_and_ragged_tensors_beside_the_stage():
  def build(stage):
    dataset = tf.data.Dataset.range(30).map(
        lambda i: (i, tf.sparse.from_dense(tf.stack([i, 0, i + 1])),
                   tf.RaggedTensor.from_row_lengths([i, i, i], [1, 2])))
    number, sparse, ragged = tf.data.make_one_shot_iterator(dataset).get_next()
    staged = stage((number * 2, sparse))
    return _train(staged[0], tf.sparse.to_dense(staged[1]), tf.sparse.to_dense(sparse), ragged.to_tensor())

  _assert_alike(build)


def test_an_intermediate_tensor_of_the_region():
  def build(stage):
    features, _ = _pairs()
    middle = features * 2
    return _train(stage(middle + 1), tf.reduce_max(middle))

  _assert_alike(build)


def test_a_summary_that_never_runs():
  def build(stage):
    features, label = _pairs()
    tf.summary.scalar("label", label)
    return _train(stage(features))

  _assert_alike(build)


def test_a_summary_of_a_raw_feature():
  def build(stage):
    features, label = _pairs()
    summary = tf.summary.scalar("label", tf.cast(label, tf.float32))
    return [*_train(stage(features)), summary]

  _assert_alike(build)


@pytest.mark.parametrize("mode", _MODES)
def test_tensors_are_fetched_by_their_names(mode):
  features, label = _pairs()
  middle = tf.identity(features * 2, name="middle")
  _stage(middle + 1, mode, name="stage")
  taken = "stage/TensorBufferTake:0" if mode != "plain" else "add:0"
  steps = _run(mode, [taken, label.name, "middle:0", features.name])
  assert [step[1] for step in steps] == list(range(6))
  for step in steps:
    assert step[0] == [n + 1 for n in step[2]]
    assert step[2] == [n * 2 for n in step[3]]
    assert step[3] == [step[1]] * len(step[3])


@pytest.mark.parametrize("mode", _MODES)
def test_runs_that_need_only_the_raw_tensor_advance_with_the_others(mode):
  features, label = _pairs()
  staged = _stage(features * 2, mode)
  with tf.Session(config=_config(mode)) as sess:
    block = tf.make_prefetch_hook().running(sess) if mode != "plain" else tf.Graph().as_default()
    with block:
      assert sess.run(label) == 0
      assert sess.run(staged).tolist() == [2, 2]
      assert sess.run(features).tolist() == [2, 2, 2]
      assert sess.run([label, staged])[1].tolist() == [6]


def test_an_iterator_that_is_initialised():
  def build(stage):
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(40).map(lambda i: (i, i * 3)))
    features, label = iterator.get_next()
    return _train(stage(features + 1), label), [iterator.initializer]

  _assert_alike(build)


@pytest.mark.parametrize("mode", _MODES)
def test_a_second_epoch_with_a_label_beside(mode):
  iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(4).map(lambda i: (i, i * 3)))
  features, label = iterator.get_next()
  step = [_stage(features + 1, mode), label]
  with tf.Session(config=_config(mode)) as sess:
    sess.run(iterator.initializer)
    block = tf.make_prefetch_hook().running(sess) if mode != "plain" else tf.Graph().as_default()
    with block:
      assert sess.run(step) == [1, 0]
      sess.run(iterator.initializer)
      assert test_util.drain(sess, step) == [[i + 1, i * 3] for i in range(4)]
      sess.run(iterator.initializer)
      assert test_util.drain(sess, step) == [[i + 1, i * 3] for i in range(4)]


def test_a_string_handle_of_the_graph():
  def build(stage):
    source = tf.data.make_initializable_iterator(tf.data.Dataset.range(40).map(lambda i: (i, i * 3)))
    iterator = tf.data.Iterator.from_string_handle(
        source.string_handle(), tf.data.get_output_types(source), tf.data.get_output_shapes(source))
    features, label = iterator.get_next()
    return _train(stage(features + 1), label), [source.initializer]

  _assert_alike(build)


def test_two_elements_are_two_calls_of_get_next():
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(40))
  staged, other = tf.staged(iterator.get_next(), capacity=2), iterator.get_next()
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    found = [value for _ in range(10) for value in sess.run([staged, other])]
  assert len(set(found)) == 20


def test_a_step_may_be_the_first_to_need_a_one_shot_iterator():
  """Whether it is depends on time, so many sessions begin. On busy cores, it was in one of thirteen."""
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(40))
  staged, other = tf.staged(iterator.get_next(), capacity=2), iterator.get_next()
  for _ in range(40):
    with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
      assert len(set(sess.run([staged, other]))) == 2


def test_queues_and_readers(tmp_path):
  path = tmp_path / "lines.txt"
  path.write_text("".join(f"{i},{i * 3}\n" for i in range(40)))

  def build(stage):
    key, line = tf.TextLineReader().read(tf.train.string_input_producer([str(path)], shuffle=False))
    features, label = tf.decode_csv(line, [[0], [0]])
    return [*_train(stage(features + 1), label), key]

  found = {}
  for mode in _MODES:
    with tf.Graph().as_default():
      fetches = build(lambda features, mode=mode: _stage(features, mode))
      hooks = [] if mode == "plain" else [tf.make_prefetch_hook()]
      with tf.train.MonitoredTrainingSession(hooks=hooks, config=_config(mode)) as sess:
        found[mode] = [_values(sess.run(fetches)) for _ in range(6)]
  assert [step[0] for step in found["plain"]] == list(range(1, 7))
  assert found["staged"] == found["plain"]
  assert found["both"] == found["plain"]


@pytest.mark.parametrize("mode", _MODES)
def test_batches_of_a_queue(mode):
  number, = tf.train.slice_input_producer([tf.range(40, dtype=tf.int64)], shuffle=False)
  features, label = tf.train.batch([number, number * 3], batch_size=4)
  step = _train(_stage(features + 1, mode), label)
  hooks = [] if mode == "plain" else [tf.make_prefetch_hook()]
  with tf.train.MonitoredTrainingSession(hooks=hooks, config=_config(mode)) as sess:
    for _ in range(5):
      staged, raw, _ = sess.run(step)
      assert ((staged - 1) * 3).tolist() == raw.tolist()


def test_python_functions_as_sources():
  def build(stage):
    numbers = iter(range(40))
    number = tf.numpy_function(lambda: np.int64(next(numbers)), [], tf.int64)
    number.set_shape([])
    return _train(stage(number * 2), number)

  _assert_alike(build)


def test_a_source_in_a_function():
  def build(stage):
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(40).map(lambda i: (i, i * 3)))
    features, label = tf.function(iterator.get_next)()
    return _train(stage(features + 1), label), [iterator.initializer]

  _assert_alike(build)


def test_random_numbers_that_the_region_and_the_step_use():
  def build(stage):
    features, _ = _pairs()
    noise = tf.random.uniform([], maxval=1 << 40, dtype=tf.int64, seed=3)
    return _train(stage(features + noise), noise)

  _assert_alike(build)


@contextlib.contextmanager
def _control_flow(version):
  """Builds conditionals and loops of this version."""
  was = tf.control_flow_v2_enabled()
  (tf.enable_control_flow_v2 if version == 2 else tf.disable_control_flow_v2)()
  try:
    yield
  finally:
    (tf.enable_control_flow_v2 if was else tf.disable_control_flow_v2)()


@pytest.mark.parametrize("version", (1, 2))
def test_conditionals_and_loops_of_either_version(version):
  def build(stage):
    with _control_flow(version):
      features, label = _pairs()
      chosen, other = tf.cond(label % 2 > 0, lambda: (label * 10, label), lambda: (label * 100, label + 7))
      zero = tf.constant(0, tf.int64)
      counted = tf.while_loop(lambda i, s: i < label, lambda i, s: (i + 1, s + label), [zero, label])
      return _train(stage(chosen + counted[0]), other, counted[1], features, label)

  _assert_alike(build)


_PREDICATES = {
    "constant": lambda: tf.constant(True),
    "placeholder": lambda: tf.compat.v1.placeholder_with_default(True, []),
    "variable": lambda: tf.get_variable("reads", [], tf.bool, initializer=tf.ones_initializer()).read_value(),
    "draw": lambda: tf.random.uniform([]) < 2.0,
    "size": lambda: tf.size(tf.zeros([3])) > 2,
}


@pytest.mark.parametrize("version", (1, 2))
@pytest.mark.parametrize("predicate", _PREDICATES)
def test_a_source_in_a_branch_whatever_its_predicate_depends_on(predicate, version):
  def build(stage):
    with _control_flow(version):
      iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(40))
      number = tf.cond(_PREDICATES[predicate](), lambda: iterator.get_next() * 1, lambda: tf.constant(-1, tf.int64))
      return [stage(number + 1), number * 2], [iterator.initializer]

  assert _assert_alike(build)[:3] == [[1, 0], [2, 2], [3, 4]]


@pytest.mark.parametrize("version", (1, 2))
@pytest.mark.parametrize("construct", ("conditional", "loop"))
@pytest.mark.parametrize("mode", _MODES)
def test_what_a_branch_or_a_loop_has_read_is_fetched_with_its_step(mode, construct, version):
  zero = tf.constant(0, tf.int64)
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(40).map(lambda n: (n, n * 10)))
  with _control_flow(version):
    if construct == "loop":
      number, label = tf.while_loop(
          lambda i, *_: i < 1, lambda i, *_: (i + 1, *iterator.get_next()), [zero, zero, zero])[1:]
    else:
      number, label = tf.cond(
          tf.compat.v1.placeholder_with_default(True, []),
          lambda: [tf.identity(tensor) for tensor in iterator.get_next()], lambda: [zero, zero])
  between = number + 3
  staged = _stage(between * 2, mode)
  steps = [[staged], [staged, number], [label], [between, staged], [number, label], [staged, between, number, label]]
  with tf.Session(config=_config(mode)) as sess, contextlib.ExitStack() as stack:
    if mode != "plain":
      stack.enter_context(tf.make_prefetch_hook().running(sess))
    assert [sess.run(fetches) for fetches in steps] == [[6], [8, 1], [20], [6, 12], [4, 40], [16, 8, 5, 50]]


def test_a_stage_under_control_dependencies_of_its_own_source():
  def build(stage):
    features, label = _pairs()
    with tf.control_dependencies([features, tf.debugging.assert_non_negative(label)]):
      staged = stage(features * 2)
    return _train(staged, label)

  _assert_alike(build)


def test_several_threads_keep_each_record_together():
  features, label = _pairs(400)
  step = [tf.reduce_max(tf.staged(features * 2, capacity=8, num_threads=4)), label]
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    steps = test_util.drain(sess, step)
  assert sorted(label for _, label in steps) == list(range(400))
  assert all(staged == 2 * label for staged, label in steps)


@pytest.mark.parametrize("smart", (False, True))
def test_a_graph_that_grows_while_the_stage_runs(smart):
  mode = "both" if smart else "staged"
  features, label = _pairs()
  middle = features * 2
  staged = _stage(middle + 1, mode)
  with tf.Session(config=_config(mode)) as sess, tf.make_prefetch_hook().running(sess):
    assert sess.run(staged).tolist() == [1]
    late = [staged, tf.reduce_max(middle), tf.identity(label), tf.summary.scalar("late", label)]
    for i in range(1, 6):
      found = sess.run(late)
      assert found[:3] == [pytest.approx([2 * i + 1] * (1 + i % 3)), 2 * i, i]
    assert sess.run(staged).tolist() == [13]


@pytest.mark.parametrize("mode", ("staged", "both"))
def test_a_run_that_feeds_a_raw_tensor_uses_no_record_of_it(mode):
  features, label = _pairs()
  middle = features * 2
  staged = _stage(middle + 1, mode)
  number = tf.reduce_max(staged)
  step = [staged, middle, label + 0]
  with tf.Session(config=_config(mode)) as sess, tf.make_prefetch_hook().running(sess):
    assert _values(sess.run(step)) == [[1], [0], 0]
    for fetches in (step, staged, number):
      for fed in (features, middle):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=f"'{fed.name}' is fed, but.*Feed what tf.staged has returned"):
          sess.run(fetches, {fed: [9]})
    assert _values(sess.run(middle, {features: [9]})) == [18]
    assert sess.run(number, {features: [9], staged: [7]}) == 7
    assert _values(sess.run(step)) == [[3, 3], [2, 2], 1]
    assert _values(sess.run(step, {label: 8})) == [[5, 5, 5], [4, 4, 4], 8]


@pytest.mark.parametrize("mode", ("staged", "both"))
def test_the_output_of_the_first_stage_of_a_chain_is_fed(mode):
  features, label = _pairs()
  first = _stage(tf.reduce_max(features), mode)
  last = _stage(first + label, mode)
  with tf.Session(config=_config(mode)) as sess, tf.make_prefetch_hook().running(sess):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"'{first.name}' is fed, but.*'prefetch_1'"):
      sess.run([label, last], {first: 800})
    assert sess.run([label, first + 1, last], {first: 800, last: 7}) == [0, 801, 7]
    assert sess.run([label, last]) == [1, 2]


@pytest.mark.parametrize("mode", ("staged", "both"))
def test_what_is_ahead_of_a_fed_stage_keeps_the_values_of_the_record(mode):
  features, label = _pairs()
  between = (tf.reduce_max(features) + 5) * 2
  staged = _stage([between, label + 1], mode)
  out = staged[0] * 7
  with tf.Session(config=_config(mode)) as sess, tf.make_prefetch_hook().running(sess):
    assert sess.run([label, between, out, staged], {staged[0]: 700}) == [0, 10, 4900, [700, 1]]
    assert sess.run([tf.stack([between, between]), tf.stack([staged[0]] * 2)], {staged[0]: 700})[0].tolist() == [12, 12]
    assert sess.run([label, between, out, staged]) == [2, 14, 98, [14, 3]]


def test_an_evaluation_feeds_the_handle_of_another_iterator():
  handle = tf.placeholder(tf.string, [])
  train = tf.data.make_one_shot_iterator(tf.data.Dataset.range(40))
  test = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100, 140))
  number = tf.data.Iterator.from_string_handle(handle, tf.int64, []).get_next()
  staged = tf.staged(number * 2, feed_dict={handle: train.string_handle()}, capacity=2)
  with tf.Session() as sess:
    test_handle = sess.run(test.string_handle())
    with tf.make_prefetch_hook().running(sess):
      assert sess.run([staged, number]) == [0, 0]
      assert sess.run(number + 1, {handle: test_handle}) == 101
      assert sess.run([staged, number]) == [2, 1]
      with pytest.raises(tf.errors.InvalidArgumentError, match="is fed, but"):
        sess.run([staged, number], {handle: test_handle})
      assert sess.run([staged, number]) == [4, 2]


@pytest.mark.parametrize("mode", ("staged", "both"))
def test_a_raw_tensor_beside_a_join_is_an_error_of_its_runs(mode):
  first, second = test_util.dataset_record(20), test_util.dataset_record(20)
  joined = tf.prefetch_join([first * 2, second * 2], capacity=4)
  both = joined + first
  with tf.Session(config=_config(mode)) as sess, tf.make_prefetch_hook().running(sess):
    assert sess.run(joined) in (0, 2)
    with pytest.raises(tf.errors.FailedPreconditionError, match=f"'{first.name}'.*'prefetch'.*tf.prefetch_join"):
      sess.run(both)
    sess.run(joined)


def test_a_source_of_several_is_needed_with_the_others():
  first, second = test_util.dataset_record(20), test_util.dataset_record(20)
  staged = tf.staged(first + second, capacity=2)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert sess.run([staged, first]) == [0, 0]
    with pytest.raises(tf.errors.FailedPreconditionError, match="Let the run also use the other sources"):
      sess.run(first)
    assert sess.run([first, second]) == [1, 1]
    assert sess.run([staged, second, first]) == [4, 2, 2]


@pytest.mark.parametrize("mode", ["staged", "smart"])
def test_what_reads_beside_a_stage_is_warned_of_once(mode, capfd):
  iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100))
  number = iterator.get_next()
  record = tf.staged(number, capacity=2) if mode == "staged" else tf.as_string(number)
  step = _train(tf.strings.to_number(tf.as_string(record), tf.int64))
  with tf.Session(config=_config("both" if mode == "smart" else mode)) as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      sess.run(step)
      beside = tf.data.Iterator.from_string_handle(iterator.string_handle(), tf.int64, []).get_next("beside")
      assert "beside" not in capfd.readouterr().err
      # Each read gets the next element, as without a stage. That costs the stage its work, so often is too often.
      assert [sess.run(beside) for _ in range(9)] == list(range(1, 10))
      assert "ahead of the steps" not in capfd.readouterr().err
      for n in range(10, 20):
        test_util.wait_until(lambda: tf.staging.stats(sess)[0].records > 0)
        assert sess.run(beside) == n
      warnings = [line for line in capfd.readouterr().err.splitlines() if "ahead of the steps" in line]
      assert sess.run(record) == (20 if mode == "staged" else b"20")
  assert len(warnings) == 1 and "'beside'" in warnings[0], warnings


def test_a_feed_from_a_source_of_the_region_is_an_error():
  features, label = _pairs()
  fed = tf.placeholder(tf.int64, [])
  record = tf.staged((features * 2, fed), feed_dict={fed: label})
  with tf.Session() as sess:
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"feed_dict.*feeds '{label.op.name}'.*'prefetch'"):
      sess.run(record)


def test_a_label_beside_a_feed_is_an_error_of_the_step():
  features, label = _pairs()
  fed = tf.placeholder(tf.int64, [None])
  staged = tf.staged(fed * 2, feed_dict={fed: features}, capacity=2)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert sess.run(staged).tolist() == [0]
    with pytest.raises(tf.errors.FailedPreconditionError, match=f"'{label.op.name}'.*Feed the stage all"):
      sess.run([staged, label])
    assert sess.run(staged).tolist() == [2, 2]


def test_a_label_that_is_fed_with_its_features():
  features, label = _pairs()
  fed = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [])
  staged = tf.staged((fed[0] * 2, fed[1]), feed_dict={fed: (features, label)}, capacity=2)
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert [_values(sess.run(staged)) for _ in range(3)] == [([0], 0), ([2, 2], 1), ([4, 4, 4], 2)]


def test_a_session_of_a_server():
  features, label = _pairs()
  step = [tf.reduce_max(tf.staged(features * 2, capacity=2)), label, tf.staged(label + 1, capacity=2)]
  server = tf.train.Server.create_local_server()
  with tf.Session(server.target) as sess, tf.make_prefetch_hook().running(sess):
    assert [sess.run(step) for _ in range(5)] == [[2 * i, i, i + 1] for i in range(5)]


def test_an_estimator_stages_only_the_features(tmp_path):
  def input_fn():
    features, label = _pairs(12)
    return {"x": tf.staged(features * 2, capacity=2)}, label

  def model_fn(features, labels, mode):
    wrong = tf.metrics.mean(tf.abs(tf.reduce_max(features["x"]) - 2 * labels))
    total = tf.get_variable("total", [], dtype=tf.int64, initializer=tf.zeros_initializer())
    train = tf.group(tf.assign_add(total, labels), tf.assign_add(tf.train.get_global_step(), 1))
    with tf.control_dependencies([tf.debugging.assert_equal(tf.reduce_max(features["x"]), 2 * labels)]):
      loss = tf.cast(tf.identity(labels), tf.float32)
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train, eval_metric_ops={"wrong": wrong},
        training_hooks=[tf.make_prefetch_hook()], evaluation_hooks=[tf.make_prefetch_hook()])

  estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
  estimator.train(input_fn)
  assert estimator.get_variable_value("total") == sum(range(12))
  assert estimator.evaluate(input_fn)["wrong"] == 0
