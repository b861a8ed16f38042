# SPDX-License-Identifier: Apache-2.0
"""A function of the API that is given without parentheses says so."""

import pytest
import tensorflow as tf

from tensorflow_staging.python import uncalled


def test_the_hook_in_a_monitored_session():
  expected = r"tf.make_prefetch_hook was given without parentheses. Write tf.make_prefetch_hook\(\)"
  tf.train.get_or_create_global_step()
  with pytest.raises(TypeError, match=expected):
    tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook])
  with tf.Session() as sess, pytest.raises(TypeError, match=expected), tf.make_prefetch_hook.running(sess):
    pass


@pytest.mark.parametrize("ask", [tf.staging.explain, tf.staging.stats, tf.staging.ahead])
@pytest.mark.parametrize("function", [tf.staging.SmartStage, tf.make_prefetch_hook])
def test_what_is_asked(ask, function):
  with pytest.raises(TypeError, match="was given without parentheses"):
    ask(function)


def test_other_values_are_taken():
  uncalled.check(3)
  uncalled.check(lambda: None)
