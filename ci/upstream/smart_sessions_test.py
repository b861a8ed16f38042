# SPDX-License-Identifier: Apache-2.0
import pytest
import smart_sessions
import tensorflow as tf

tf1 = tf.compat.v1


def _doubled(iterator: tf1.data.Iterator) -> tf.Tensor:
  return 2 * iterator.get_next()


def _stages(sess: tf1.Session) -> list[str]:
  return [stage.name for stage in tf.staging.stats(sess)]


@pytest.mark.parametrize("call", [False, True])
def test_the_first_run_that_takes_a_record_starts_the_stages(call):
  with tf.Graph().as_default(), smart_sessions.everywhere(), tf1.Session() as sess:
    iterator = tf1.data.make_initializable_iterator(tf.data.Dataset.range(3))
    doubled = _doubled(iterator)
    sess.run(iterator.initializer)
    assert _stages(sess) == []
    step = sess.make_callable(doubled) if call else lambda: sess.run(doubled)
    assert [step() for _ in range(3)] == [0, 2, 4]
    assert _stages(sess) == ["prefetch"]
    with pytest.raises(tf.errors.OutOfRangeError):
      step()


def test_iterators_that_come_later_give_each_record():
  # The stages are stopped and started again for them.
  with tf.Graph().as_default(), smart_sessions.everywhere(), tf1.Session() as sess:
    first = _doubled(tf1.data.make_one_shot_iterator(tf1.data.Dataset.range(3)))
    assert sess.run(first) == 0
    second = _doubled(tf1.data.make_one_shot_iterator(tf1.data.Dataset.range(3)))
    assert [sess.run(second), *sess.run([first, second])] == [0, 2, 2]


def test_distributed_sessions_have_stages_too():
  server = tf.distribute.Server.create_local_server()
  with tf.Graph().as_default(), smart_sessions.everywhere(), tf1.Session(server.target) as sess:
    assert sess.run(_doubled(tf1.data.make_one_shot_iterator(tf1.data.Dataset.range(3)))) == 0
    assert _stages(sess) == ["prefetch"]


def test_later_sessions_have_no_stages():
  with smart_sessions.everywhere():
    pass
  with tf.Graph().as_default(), tf1.Session() as sess:
    assert sess.run(_doubled(tf1.data.make_one_shot_iterator(tf1.data.Dataset.range(3)))) == 0
    assert _stages(sess) == []
