# SPDX-License-Identifier: Apache-2.0
"""What a step of a random program does, and how the program divides it into stages."""

from __future__ import annotations

import dataclasses
from typing import Union

from tensorflow_staging.python.testing.histories import iterator_model
from tensorflow_staging.python.testing.histories import outcomes


@dataclasses.dataclass(frozen=True)
class Read:
  """Reads one of some sources.

  Attributes:
    names: One source, or two; of two, the sum of what the step has read before says which.
    only_if_even: Whether nothing is read if that sum is odd.
    times: How often a source is read.
    chooses_anew: Whether the sum says each time which one that is, and not only the first time.
  """

  names: tuple[str, ...]
  only_if_even: bool = False
  times: int = 1
  chooses_anew: bool = False


@dataclasses.dataclass(frozen=True)
class Check:
  """Fails at some records.

  Attributes:
    code: The class of the error.
    divisor: It fails if this divides the sum of what the step has read before.
  """

  code: str
  divisor: int


Op = Union[Read, Check]


@dataclasses.dataclass(frozen=True)
class Stage:
  """A part of the step that may run ahead.

  Attributes:
    branches: What it does. A stage with several of these is a join: each makes records of its own.
    capacity: How many records wait; -1 lets the stage choose.
    num_threads: How many producers each branch has.
  """

  branches: tuple[tuple[Op, ...], ...]
  capacity: int = 1
  num_threads: int = 1


@dataclasses.dataclass(frozen=True)
class Layout:
  """How a session, or a `tf.function`, divides the step.

  Attributes:
    cuts: After how many ops each stage ends but the last one. A join is a stage of its own before all of them.
    capacities: The capacity of each stage, as above.
    manual: How many stages, the first ones, are those of `tf.staged` or `tf.prefetch_join`.
    smart_stage: Whether SmartStage is on, which makes a stage of what comes after these.
  """

  cuts: tuple[int, ...]
  capacities: tuple[int, ...]
  manual: int
  smart_stage: bool

  @property
  def has_stage(self) -> bool:
    """Whether anything runs ahead."""
    return self.manual > 0 or self.smart_stage


@dataclasses.dataclass(frozen=True)
class Program:
  """A program.

  Attributes:
    names: Its sources.
    joined: What each source of a join does before the ops; empty without a join.
    ops: What the step does, in this order.
    ignores: Whether a record that fails with `outcomes.MISSING` is left out.
    num_threads: How many producers a stage has; -1 lets it choose.
    deterministic: Whether they make the records of one.
    layouts: How it may be divided.
    data: What its initialisers give each source; None if they are fed other data each time.
    two_initialisers: Whether each source has a second initialiser, in a conditional.
    prefetches: Whether tf.data itself reads ahead.
    holds_positions: Whether a restored position outlasts the initialiser of its data, up to the next record.
    in_functions: Whether the ops are in functions.
    by_handle: Whether one of two sources is chosen by its handle, and not by a conditional.
    control_flow: The version of control flow.
  """

  names: tuple[str, ...]
  joined: tuple[tuple[Op, ...], ...]
  ops: tuple[Op, ...]
  ignores: bool
  num_threads: int
  deterministic: bool
  layouts: tuple[Layout, ...]
  data: iterator_model.Data | None
  two_initialisers: bool
  prefetches: bool
  holds_positions: bool
  in_functions: bool
  by_handle: bool
  control_flow: int

  @property
  def keeps_order(self) -> bool:
    """Whether records come in the order of the elements."""
    return self.deterministic

  def ignored(self, outcome: outcomes.Outcome) -> bool:
    """Whether a record with this outcome is left out."""
    return self.ignores and isinstance(outcome, outcomes.Error) and outcome.code == outcomes.MISSING

  def stages(self, layout: Layout) -> list[Stage]:
    """Returns the stages of a layout."""
    bounds = [0, *layout.cuts, len(self.ops)]
    parts = [(self.ops[begin:end],) for begin, end in zip(bounds, bounds[1:])]
    if self.joined:
      parts = [self.joined, *(part for part in parts if part[0])]
    num_threads = 1 if self.deterministic else self.num_threads
    return [Stage(part, capacity, num_threads) for part, capacity in zip(parts, layout.capacities)]
