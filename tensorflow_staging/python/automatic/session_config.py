# SPDX-License-Identifier: Apache-2.0
"""What the environment makes of the configurations of sessions and servers."""

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib

from tensorflow_staging.python.automatic import managed_sessions
from tensorflow_staging.python.automatic import measured_sessions
from tensorflow_staging.python.automatic import notices
from tensorflow_staging.python.automatic import setting
from tensorflow_staging.python.session import server_config_check
from tensorflow_staging.python.smart_stage import graph_key


def of_new_session(session: session_lib.BaseSession, config: config_pb2.ConfigProto) -> config_pb2.ConfigProto:
  """Returns the configuration that a new session gets, and watches the session if that is what the environment asks.

  Args:
    session: The session, which knows its graph and nothing else yet.
    config: The configuration that the program has given it. Stays as it is.

  Raises:
    ValueError: If the environment variable has a wrong value, or SmartStage is on with the options of another graph.
  """
  measured_sessions.watch_if_asked()
  config = _changed(config, session)
  if config.graph_options.optimizer_options.do_smart_stage:
    graph_key.check(session.graph, config)
  return config


def of_new_server(config: config_pb2.ConfigProto) -> None:
  """Checks the default configuration of a new server's sessions, and turns SmartStage off in it if that is asked.

  The environment does not turn it on there: the sessions of this program have it by themselves, and those of others may
  have no hook.

  Args:
    config: The configuration, which may be changed.

  Raises:
    ValueError: If the environment variable has a wrong value, or the configuration asks for what a server would ignore.
  """
  server_config_check.check(config)
  if setting.current() == setting.Setting.OFF:
    changed = setting.applied_to(config)
    if changed is not config:
      notices.say_it_is_off()
      config.CopyFrom(changed)


def _changed(config: config_pb2.ConfigProto, session: session_lib.BaseSession) -> config_pb2.ConfigProto:
  """Returns what the environment makes of a session's configuration, tells the program, and watches the session."""
  changed = setting.applied_to(config)
  if setting.current() == setting.Setting.OFF:
    if changed is not config:
      notices.say_it_is_off()
  elif setting.current() == setting.Setting.ON:
    if changed is not config:
      notices.say_it_is_on()
      managed_sessions.manage(session)
    elif config.graph_options.optimizer_options.do_smart_stage:
      notices.say_the_program_turns_it_on()
      managed_sessions.watch_end(session)
    else:
      notices.say_it_stays_off()
  return changed
