# SPDX-License-Identifier: Apache-2.0
"""Distributed sessions do not support several GPU streams, and refuse them."""

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.protobuf import rewriter_config_pb2

_REFUSAL = "several GPU streams are not supported in distributed sessions"


def _config(streams: int) -> config_pb2.ConfigProto:
  config = config_pb2.ConfigProto()
  rewrite_options = config.graph_options.rewrite_options
  rewrite_options.use_multi_stream = rewriter_config_pb2.RewriterConfig.ON
  rewrite_options.multi_stream_opts.multi_stream_num = streams
  return config


# One stream is as little known to a server as two are.
@pytest.mark.parametrize("streams", [1, 2])
def test_a_session_is_refused(streams):
  target = tf.train.Server.create_local_server().target
  with pytest.raises(tf.errors.UnimplementedError, match=f"use_multi_stream is ON.*{target}.*{_REFUSAL}"):
    tf.Session(target, config=_config(streams))


def test_a_server_is_refused():
  with pytest.raises(ValueError, match=f"use_multi_stream of a server must be off: {_REFUSAL}"):
    tf.train.Server.create_local_server(config=_config(2), start=False)


def test_a_local_session_is_not_refused():
  with tf.Session(config=_config(2)) as sess:
    assert sess.run(tf.constant(1) + 1) == 2
