# SPDX-License-Identifier: Apache-2.0
"""Says to the graph passes what each run of a session feeds, which a pass does not see."""

import contextlib
import functools
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any

from tensorflow.python.client import session as session_lib

from tensorflow_staging.python.pywrap import _pywrap_staging

_Session = session_lib.BaseSession


def watch() -> None:
  """Lets all sessions say it."""
  _Session._do_run = _watched(_Session._do_run, lambda handle, targets, fetches, feeds, *_: feeds)
  _Session._make_callable_from_options = _watched(
      _Session._make_callable_from_options, lambda options: options.feed)
  _Session.partial_run_setup = _watched(_Session.partial_run_setup, lambda fetches, feeds=None: feeds or ())


def _watched(method: Any, feeds_of: Any) -> Any:
  @functools.wraps(method)
  def call(session: _Session, *args: Any, **kwargs: Any) -> Any:
    feeds = feeds_of(*args, **kwargs)
    if not feeds:
      return method(session, *args, **kwargs)
    with _feeding(feeds):
      return method(session, *args, **kwargs)

  return call


@contextlib.contextmanager
def _feeding(feeds: Iterable[Any]) -> Iterator[None]:
  _pywrap_staging.set_feeds(list(map(_name_of, feeds)))
  try:
    yield
  finally:
    _pywrap_staging.set_feeds([])


def _name_of(feed: Any) -> str:
  """Returns the name of a fed tensor, which is a key of a dict, a tensor or a name already."""
  if isinstance(feed, str):
    return feed
  return (feed.deref() if hasattr(feed, "deref") else feed).name
