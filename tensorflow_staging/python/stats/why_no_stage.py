# SPDX-License-Identifier: Apache-2.0
"""Says why no stage runs in a session, and what to do."""

from typing import Optional

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib

from tensorflow_staging.python import api_name
from tensorflow_staging.python.session import all_sessions
from tensorflow_staging.python.smart_stage import optimizer_options
from tensorflow_staging.python.stages import stage_graph


def reason(session: Optional[session_lib.BaseSession]) -> str:
  """Returns one line that says why no stage runs, and what to do.

  Args:
    session: The session; None stands for a monitored session that has been closed.
  """
  if session is None or session._closed:
    return "no stage runs: the session is closed. Ask while it is open."
  has_manual_stages = bool(session.graph.get_collection_ref(stage_graph.RUNNERS_COLLECTION))
  finds_stages = optimizer_options.makes_stages(session._config or config_pb2.ConfigProto())
  if not has_manual_stages and not finds_stages:
    return (
        "no stage runs: the graph has no tf.staged, and SmartStage is off in the configuration of the session. Give the"
        f" session config={api_name.API}.smart_stage_config(config).")
  if all_sessions.ended(session) is not None:
    return "no stage runs: the hook of the stages has ended. It may be started again."
  if all_sessions.has_started(session):
    return (
        "no stage runs: SmartStage has found nothing to run ahead of the step."
        " print(tf.staging.explain(config=config)) says why.")
  if all_sessions.is_managed(session):
    return (
        "no stage runs: no run of the session has taken a record from an iterator so far, and SmartStage runs ahead"
        " only what follows one.")
  return (
      "no stage runs: the session has no prefetch hook. Give it hooks=[tf.make_prefetch_hook()], or run its steps"
      " inside `with tf.make_prefetch_hook().running(session):`.")
