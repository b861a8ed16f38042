# SPDX-License-Identifier: Apache-2.0
"""An environment variable turns SmartStage on or off in all sessions of a program, which need not know of it."""

import weakref

import pytest
import tensorflow.compat.v1 as tf

from tensorflow_staging.python.automatic import notices
from tensorflow_staging.python.automatic import printed_line
from tensorflow_staging.python.automatic import setting
from tensorflow_staging.python.testing import stage_stats_data
from tensorflow_staging.python.testing import test_util


@pytest.fixture(autouse=True)
def said(monkeypatch):
  """What is said to the user, and nothing that earlier tests have left."""
  texts = []
  monkeypatch.setattr(printed_line, "say", texts.append)
  monkeypatch.setattr(notices, "_said", {})
  monkeypatch.setattr(notices, "_ended", [])
  return texts


@pytest.fixture
def on(monkeypatch):
  monkeypatch.setenv(setting.VARIABLE, "1")


@pytest.fixture
def off(monkeypatch):
  monkeypatch.setenv(setting.VARIABLE, "off")


def _step(count=100):
  """A step that updates a variable with the record: twice an element."""
  total = tf.get_variable("total", initializer=tf.constant(0, tf.int64), use_resource=True)
  return total.assign_add(2 * test_util.dataset_record(count))


def _names(sess):
  return [stage.name for stage in tf.staging.stats(sess)]


def _config(smart_stage=True, **options):
  config = tf.ConfigProto()
  config.graph_options.optimizer_options.do_smart_stage = smart_stage
  if options:
    config.graph_options.optimizer_options.smart_stage_options.CopyFrom(tf.SmartStageOptions(**options))
  return config


@pytest.mark.usefixtures("on")
def test_a_session_that_takes_no_record():
  with tf.Session() as sess:
    sess.run(tf.constant(1))
    assert "no run of the session has taken a record from an iterator so far" in str(tf.staging.stats(sess))


@pytest.mark.usefixtures("on")
def test_the_report_is_that_of_a_session():
  _step()
  assert str(tf.staging.explain()).startswith("SmartStage is on: 2 nodes")


@pytest.mark.usefixtures("off")
def test_the_report_says_what_turns_it_off():
  _step()
  text = str(tf.staging.explain(config=_config()))
  assert text.startswith("SmartStage is off (by TF_STAGING_SMART_STAGE=off). If it were on: 2 nodes")


@pytest.mark.usefixtures("on")
def test_a_plain_session(said):
  step = _step()
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    assert _names(sess) == []
    assert [sess.run(step) for _ in range(3)] == [0, 2, 6]
    assert _names(sess) == ["prefetch"]
  assert said == [
      "SmartStage is on in all sessions of this program, by TF_STAGING_SMART_STAGE=1. TF_STAGING_SMART_STAGE=off turns"
      " it off."]
  notices.say_what_it_gained()
  assert said[1:] == [
      "Stage 'prefetch' has ended after 3 records: it ran for 2 steps, too few to say what it gained; it takes 10."]


@pytest.mark.usefixtures("on")
def test_a_monitored_session_without_a_hook():
  step = _step()
  with tf.train.MonitoredTrainingSession() as sess:
    assert sess.run(step) == 0
    assert _names(sess) == ["prefetch"]


@pytest.mark.usefixtures("on")
def test_an_estimator(said, tmp_path):

  def model_fn(features, labels, mode):
    del labels
    total = tf.get_variable("total", initializer=tf.constant(0, tf.int64), use_resource=True)
    update = total.assign_add(2 * features)
    with tf.control_dependencies([update]):
      train_op = tf.train.get_global_step().assign_add(1)
    return tf.estimator.EstimatorSpec(mode, loss=tf.cast(update, tf.float32), train_op=train_op)

  tf.estimator.Estimator(model_fn, str(tmp_path)).train(lambda: tf.data.Dataset.range(100), steps=30)
  notices.say_what_it_gained()
  assert said[1].startswith("Stage 'prefetch' has ended after 30 records: it h")


@pytest.mark.usefixtures("on")
def test_a_session_of_a_server():
  server = tf.train.Server.create_local_server()
  step = _step()
  with tf.Session(server.target) as sess:
    sess.run(tf.global_variables_initializer())
    assert [sess.run(step) for _ in range(3)] == [0, 2, 6]
    assert _names(sess) == ["prefetch"]


@pytest.mark.parametrize("feeds", [False, True])
@pytest.mark.usefixtures("on")
def test_a_callable(feeds):
  step = _step()
  placeholder = tf.placeholder(tf.int64, [])
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    if feeds:
      call = sess.make_callable(step + placeholder, [placeholder])
      assert [call(1), call(1)] == [1, 3]
    else:
      call = sess.make_callable(step)
      assert [call(), call()] == [0, 2]
    assert _names(sess) == ["prefetch"]


@pytest.mark.usefixtures("on")
def test_keras_in_graph_mode():
  features = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100).repeat().batch(4)).get_next()
  inputs = tf.keras.Input(tensor=tf.cast(features, tf.float32)[:, None])
  model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(inputs))
  model.compile("sgd", "mse", target_tensors=[tf.zeros([4, 1])])
  model.fit(steps_per_epoch=3, epochs=1, verbose=0)
  with tf.keras.backend.get_session() as sess:
    assert _names(sess) == ["prefetch"]
  tf.keras.backend.set_session(None)


@pytest.mark.usefixtures("on")
def test_the_hook_of_the_program_runs_its_stages():
  step = _step()
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    with tf.make_prefetch_hook().running(sess):
      assert sess.run(step) == 0
      assert _names(sess) == ["prefetch"]
    assert _names(sess) == []
  with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
    assert sess.run(step) == 0
    assert _names(sess) == ["prefetch"]


@pytest.mark.usefixtures("on")
def test_what_the_program_sets_wins(said):
  step = _step()
  with tf.Session(config=_config(name="own", capacity=3)) as sess, tf.make_prefetch_hook().running(sess):
    sess.run(tf.global_variables_initializer())
    assert sess.run(step) == 0
    stage, = tf.staging.stats(sess)
    assert (stage.name, stage.capacity) == ("own", 3)
  notices.say_what_it_gained()
  assert said == [
      "SmartStage is on in this program, with the program's own settings. TF_STAGING_SMART_STAGE=off turns it off.",
      "Stage 'own' has ended after 1 record: it ran for 0 steps, too few to say what it gained; it takes 10."]


@pytest.mark.usefixtures("on")
def test_the_configuration_of_the_program_does_not_change():
  config = tf.ConfigProto()
  with tf.Session(config=config):
    assert config == tf.ConfigProto()


@pytest.mark.usefixtures("on")
@pytest.mark.parametrize("interactive", [False, True])
def test_a_session_that_places_pruned_graphs_has_no_stages(said, interactive):
  config = tf.ConfigProto()
  config.graph_options.place_pruned_graph = not interactive
  step = _step()
  with tf.device("/job:is_not_there"):
    tf.constant(1, name="cannot_be_placed")
  sess = tf.InteractiveSession(config=config) if interactive else tf.Session(config=config)
  try:
    sess.run(tf.global_variables_initializer())
    assert sess.run(step) == 0
    assert _names(sess) == []
  finally:
    sess.close()
  line, = said
  assert line.startswith("SmartStage stays off in an InteractiveSession, and with graph_options.place_pruned_graph: ")


@pytest.mark.usefixtures("on")
def test_a_source_that_comes_later_gives_each_record():
  first = _step()
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    assert sess.run(first) == 0
    other = tf.get_variable("other", initializer=tf.constant(0, tf.int64), use_resource=True)
    second = other.assign_add(2 * test_util.dataset_record(100))
    sess.run(other.initializer)
    assert [sess.run(second), *sess.run([first, second])] == [0, 2, 2]


@pytest.mark.usefixtures("on")
def test_each_record_to_the_end_of_the_data():
  step = _step(5)
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    assert test_util.drain(sess, step) == [0, 2, 6, 12, 20]


@pytest.mark.usefixtures("on")
def test_without_a_stage_the_end_says_why(said):
  with tf.Session() as sess:
    sess.run(tf.constant(1))
  notices.say_what_it_gained()
  assert said[1].startswith("SmartStage has found nothing to run ahead: no session took records from an iterator,")


def test_the_end_names_the_stages_with_the_most_records_in_their_order(said):
  notices.note_ended([stage_stats_data.stats(taken=taken) for taken in (3, 900, 2, 40, 50, 60, 70)])
  notices.say_what_it_gained()
  assert [line.split(":")[0] for line in said] == [
      *(f"Stage 'prefetch' has ended after {count} records" for count in (900, 40, 50, 60, 70)),
      "2 more stages had fewer records."]


@pytest.mark.usefixtures("on")
def test_a_session_that_is_dropped_is_freed():
  sess = tf.Session()
  sess.run(tf.constant(1))
  reference = weakref.ref(sess)
  del sess
  assert reference() is None


@pytest.mark.usefixtures("off")
def test_it_is_off_where_the_program_turns_it_on(said):
  step = _step()
  config = _config()
  config.graph_options.optimizer_options.do_async_embedding = True
  with tf.Session(config=config) as sess, tf.make_prefetch_hook().running(sess):
    sess.run(tf.global_variables_initializer())
    assert sess.run(step) == 0
    assert _names(sess) == []
  assert said == ["SmartStage is off, although the program turns it on, by TF_STAGING_SMART_STAGE=off."]
  assert config.graph_options.optimizer_options.do_smart_stage


@pytest.mark.usefixtures("off")
def test_it_is_off_in_a_server():
  server = tf.train.Server.create_local_server(config=_config())
  assert not server.server_def.default_session_config.graph_options.optimizer_options.do_smart_stage


@pytest.mark.usefixtures("off")
def test_a_program_that_does_not_turn_it_on_notices_nothing(said):
  step = _step()
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    assert sess.run(step) == 0
  assert said == []


@pytest.mark.usefixtures("off")
def test_stages_by_hand_stay():
  record = tf.staged(test_util.dataset_record(10))
  with tf.Session() as sess, tf.make_prefetch_hook().running(sess):
    assert sess.run(record) == 0
    assert _names(sess) == ["prefetch"]


def test_without_the_variable_the_program_decides(said):
  step = _step()
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    assert sess.run(step) == 0
    assert "_do_run" not in vars(sess)
  assert said == []


def test_a_wrong_value(monkeypatch):
  monkeypatch.setenv(setting.VARIABLE, "yes")
  with pytest.raises(ValueError, match="TF_STAGING_SMART_STAGE is 'yes'; allowed are '1', .* and 'off'"):
    tf.Session()
