# SPDX-License-Identifier: Apache-2.0
"""Plays histories to sessions with stages."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from tensorflow_staging.python.testing.histories import graph_ops
from tensorflow_staging.python.testing.histories import iterator_model
from tensorflow_staging.python.testing.histories import outcomes
from tensorflow_staging.python.testing.histories import product_player
from tensorflow_staging.python.testing.histories import programs
from tensorflow_staging.python.testing.histories import session_graph


class SessionPlayer(product_player.ProductPlayer):
  """A program in sessions."""

  def __init__(self, program: programs.Program, folder: pathlib.Path):
    super().__init__(program, folder)
    self._graphs: dict[programs.Layout, session_graph.SessionGraph] = {}
    self._notes: dict[programs.Layout, str] = {}
    self._sess: tf.Session | None = None
    self._stages = contextlib.ExitStack()
    self._initialisations = self._count = 0

  def __enter__(self) -> SessionPlayer:
    return self

  def __exit__(self, *_) -> None:
    self._close()

  def notes(self) -> list[str]:
    """Returns which stages the layouts had."""
    return [f"had {note}" for note in self._notes.values()]

  def new_session(self, layout: programs.Layout) -> None:
    self._close()
    if layout not in self._graphs:
      self._graphs[layout] = session_graph.SessionGraph(self._program, layout)
    self._graph = self._graphs[layout]
    self._layout = layout
    self._reads_in_step = layout.manual < len(self._program.stages(layout))
    # What stays in the step cannot leave out a record, and the step fails.
    self._retries = self._program.ignores and self._reads_in_step
    self._sess = tf.Session(graph=self._graph.graph, config=self._graph.config())
    self._sess.run(self._graph.initialise_variables)
    self._data = {}
    self._initialisations = self._count = 0

  def step(self) -> outcomes.Outcome:
    self._count += 1
    step = self._graph.step
    if self._count % 3 == 0 and self._graph.step_and_element is not None:
      step = self._graph.step_and_element
    outcome = graph_ops.outcome_of(lambda: session_graph.record_of(self._sess.run(step)))
    return self.step() if self._retries and self._program.ignored(outcome) else outcome

  def initialise(self, names: Iterable[str], data: iterator_model.Data) -> None:
    self._initialise({name: data for name in names})

  def initialise_in_vain(self, name: str, way: int) -> None:
    initialiser, feeds, fails = self._graph.initialiser_in_vain(name, way)
    self._run(initialiser, feeds, fails=fails)

  def restore(self, names: Iterable[str], saved: product_player.Saved, way: int) -> None:
    data = {name: saved.data[name] for name in names}
    # A program can leave the initialiser for later, or to the restore, if its positions wait for an initialiser.
    restores_first = self._program.holds_positions and way > 1
    runs_it = self._program.holds_positions and self._program.data and not self._program.two_initialisers and way == 1
    if not restores_first and not runs_it:
      self._initialise(data)
    for saver in self._graph.savers(names):
      saver.restore(self._sess, saved.path)
    if restores_first:
      self._initialise(data)
    self._data |= data

  def read_beside(self, name: str, way: int) -> outcomes.Outcome | None:
    del way
    if self._graph.beside is None:
      return None
    handle = self._sess.run(self._graph.handle_of(name))
    return graph_ops.outcome_of(lambda: int(self._sess.run(self._graph.beside, {self._graph.handle: handle})))

  def start(self, layout: programs.Layout) -> None:
    del layout
    self._stages.enter_context(tf.make_prefetch_hook().running(self._sess))
    if self._layout not in self._notes:
      self._notes[self._layout] = self._kinds_of_stages()
    self.is_running = True

  def stop(self) -> None:
    self.is_running = False
    self._stages.close()

  def discard(self) -> None:
    tf.staging.discard(self._sess)

  def _may_step_during_a_save(self) -> bool:
    # Otherwise, a save may come between two reads of a step that reads itself.
    return not self._reads_in_step

  def _write(self, path: str) -> None:
    saver, = self._graph.savers(self._program.names)
    saver.save(self._sess, path, write_meta_graph=False, write_state=False)

  def _do_something_else(self) -> None:
    self._sess.run(self._graph.nothing)

  def _kinds_of_stages(self) -> str:
    manual = self._layout.manual
    kinds = ["tf.staged"] if manual else []
    if len(tf.staging.stats(self._sess)) > manual:
      kinds.append("SmartStage")
    return " and ".join(kinds) or "no stage"

  def _initialise(self, data: Mapping[str, iterator_model.Data]) -> None:
    self._initialisations += 1
    failing = self._graph.initialiser_in_a_failing_run(data) if self._initialisations % 4 == 0 else None
    self._run(failing or self._graph.initialisers(data), self._graph.feeds(data), fails=failing is not None)
    self._data |= data

  def _run(self, fetches: Any, feeds: dict[tf.Tensor, Any], *, fails: bool) -> None:
    try:
      self._sess.run(fetches, feeds)
    except tf.errors.InvalidArgumentError:
      if fails:
        return
      raise
    assert not fails, "A run that had to fail has succeeded."

  def _close(self) -> None:
    self.stop()
    if self._sess is not None:
      self._sess.close()
      self._sess = None
