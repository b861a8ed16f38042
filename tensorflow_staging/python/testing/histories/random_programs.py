# SPDX-License-Identifier: Apache-2.0
"""Draws programs."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tensorflow_staging.python.testing.histories import iterator_model
from tensorflow_staging.python.testing.histories import outcomes
from tensorflow_staging.python.testing.histories import programs

MOST_ELEMENTS = 14
_LAYOUTS = 3
_MOST_READS = 4
_JOINS = 0.12
_UNORDERED = 0.08
_CODES = (outcomes.INVALID, outcomes.MISSING)


def random_program(rng: random.Random, *, in_functions: bool) -> programs.Program:
  """Draws a program.

  Args:
    rng: The source of chance.
    in_functions: Whether a `tf.function` can be the program: it has one stage, which keeps the order and ignores no
      error.
  """
  names = tuple("ABC"[:rng.randint(1, 3)])
  kind = rng.random()
  joined, deterministic = (), True
  num_threads = 1 if in_functions else rng.choice([1, 1, 2, 3, -1])
  if not in_functions and kind < _JOINS:
    names = tuple("ABC"[:rng.randint(2, 3)])
    joined = _joined(rng, names[:2])
    ops = _ops(rng, names[2:], first=False) if names[2:] else ()
  elif not in_functions and kind < _JOINS + _UNORDERED:
    names, num_threads, deterministic = ("A",), rng.randint(2, 3), False
    ops = (programs.Read(names), *_checks(rng, 0.5))
  else:
    # SmartStage and functions read ahead only what no conditional and no loop reads, and SmartStage what is read once.
    is_straight = rng.random() < (0.85 if in_functions else 0.6)
    ops = _straight_ops(rng, names, once=not in_functions) if is_straight else _ops(rng, names, first=True)
  layouts = tuple(_layout(rng, ops, joined, in_functions=in_functions) for _ in range(_LAYOUTS))
  return programs.Program(
      names=names, joined=joined, ops=ops, ignores=not in_functions and rng.random() < 0.25, num_threads=num_threads,
      deterministic=deterministic,
      layouts=layouts,
      data=random_data(rng, 1) if not in_functions and rng.random() < 0.15 else None,
      two_initialisers=rng.random() < 0.15, prefetches=rng.random() < 0.2,
      holds_positions=not in_functions and deterministic and rng.random() < 0.4,
      in_functions=rng.random() < 0.2, by_handle=rng.random() < 0.5, control_flow=rng.randint(1, 2))


def random_data(rng: random.Random, base: int) -> iterator_model.Data:
  """Draws data of a source.

  Args:
    rng: The source of chance.
    base: The number of the data.
  """
  length = rng.randint(1, MOST_ELEMENTS)
  invalid, missing = (
      frozenset(rng.randrange(length) for _ in range(rng.choice([0, 0, 0, 1, 2]))) for _ in range(2))
  return iterator_model.Data(base, length, invalid, missing - invalid)


def _ops(rng: random.Random, names: Sequence[str], *, first: bool) -> tuple[programs.Op, ...]:
  """Draws what reads some sources. If nothing comes before it, it reads one of them in any case."""
  ops = []
  for i in range(rng.randint(1, _MOST_READS)):
    always = first and i == 0
    chooses = not always and len(names) > 1 and rng.random() < 0.25
    ops.append(programs.Read(
        tuple(rng.sample(names, 2)) if chooses else (rng.choice(names),),
        only_if_even=not always and rng.random() < 0.3, times=2 if rng.random() < 0.2 else 1,
        chooses_anew=rng.random() < 0.5))
    ops += _checks(rng, 0.2)
  return tuple(ops)


def _straight_ops(rng: random.Random, names: Sequence[str], *, once: bool) -> tuple[programs.Op, ...]:
  """Draws what reads some sources in each step, once or several times."""
  read = rng.sample(names, len(names)) if once else [rng.choice(names) for _ in range(rng.randint(1, _MOST_READS))]
  return tuple(op for name in read for op in (programs.Read((name,)), *_checks(rng, 0.2)))


def _checks(rng: random.Random, chance: float) -> list[programs.Check]:
  return [programs.Check(rng.choice(_CODES), rng.choice([3, 4, 5, 7]))] if rng.random() < chance else []


def _joined(rng: random.Random, names: Sequence[str]) -> tuple[tuple[programs.Op, ...], ...]:
  """Draws a branch for each source. Their records have the same number of values."""
  reads = rng.randint(1, 2)
  return tuple(
      (programs.Read((name,)), *(programs.Read((name,), only_if_even=rng.random() < 0.5) for _ in range(1, reads)),
       *_checks(rng, 0.3)) for name in names)


def _layout(
    rng: random.Random, ops: Sequence[programs.Op], joined: Sequence[Sequence[programs.Op]], *,
    in_functions: bool) -> programs.Layout:
  possible = [cut for cut in range(1, len(ops)) if not (in_functions or _sources(ops[:cut]) & _sources(ops[cut:]))]
  cuts = tuple(sorted(rng.sample(possible, rng.randint(0, min(2, len(possible))))))
  stages = len(cuts) + 1 + (1 if joined and ops else 0)
  manual = rng.choice([stages, stages, rng.randint(1 if joined else 0, stages)])
  if not joined and rng.random() < 0.3:
    cuts, stages, manual = (), 1, 0
  is_unstaged = not manual and rng.random() < 0.2
  return programs.Layout(
      cuts=cuts, capacities=tuple(rng.choice([1, 2, 3, 4, -1]) for _ in range(stages)), manual=manual,
      smart_stage=not is_unstaged and (manual < stages or rng.random() < 0.3))


def _sources(ops: Sequence[programs.Op]) -> set[str]:
  return {name for op in ops if isinstance(op, programs.Read) for name in op.names}
