# SPDX-License-Identifier: Apache-2.0
"""The rule for what stages have read ahead: each iterator has a ledger of it, and `Ledgers.roll_back` undoes reads.

An entry of a ledger is what one read of the iterator gave and no step has used: an element, the end of the data or an
error. Somebody holds it, a run or the record that the run has made, or it is back: then the next read gets it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tensorflow_staging.python.testing.histories import iterator_model
from tensorflow_staging.python.testing.histories import outcomes


class Entry:
  """What one read of an iterator gave."""

  __slots__ = ("ledger", "version", "outcome", "is_back", "used_at")

  def __init__(self, ledger: Ledger, outcome: outcomes.Outcome, *, is_back: bool = False):
    self.ledger = ledger
    self.version = ledger.version
    self.outcome = outcome
    self.is_back = is_back
    # The time at which a step used it.
    self.used_at: int | None = None

  @property
  def is_void(self) -> bool:
    """Whether the iterator has got other data since."""
    return self.version != self.ledger.version


class Ledger:
  """An iterator, and what has left it and is not used.

  Attributes:
    iterator: The iterator.
    version: How often it has got other data.
    entries: What has left it, in this order. Used entries stay while a save may need them.
    is_being_read: Reads take turns, since the entries must have the order of the data.
  """

  def __init__(self, source: int):
    self.iterator = iterator_model.Iterator(source)
    self.version = 0
    self.entries: list[Entry] = []
    self.is_being_read = False

  def unused(self) -> list[Entry]:
    """Returns what no step has used."""
    return [entry for entry in self.entries if entry.used_at is None]

  def take_back(self) -> Entry | None:
    """Returns the oldest entry that is back, which then is no longer; None if there is none."""
    for entry in self.entries:
      if entry.is_back and entry.used_at is None:
        entry.is_back = False
        return entry
    return None

  def read(self) -> Entry:
    """Reads the iterator itself."""
    outcome, self.iterator = self.iterator.next()
    entry = Entry(self, outcome)
    self.entries.append(entry)
    return entry

  def change(self, iterator: iterator_model.Iterator, restored: Iterable[outcomes.Outcome] = ()) -> None:
    """Gives the iterator other data or another position.

    Args:
      iterator: The iterator afterwards.
      restored: What reads get before what is in the iterator.
    """
    self.iterator = iterator
    self.version += 1
    self.entries = [Entry(self, outcome, is_back=True) for outcome in restored]


class Holder:
  """A run, and later the record that it has made, or its failure.

  Attributes:
    entries: What it holds.
    is_stale: Whether something of that went back, so that it must not arrive.
  """

  def __init__(self):
    self.entries: list[Entry] = []
    self.is_stale = False


class Ledgers:
  """The ledgers of a program, and who holds their entries.

  Attributes:
    ledgers: By the name of the source.
    holders: The runs that are under way, and the records and failures that wait.
  """

  def __init__(self, names: Iterable[str]):
    self.ledgers = {name: Ledger(i) for i, name in enumerate(names)}
    self.holders: list[Holder] = []
    self._clock = 0
    self._saves: list[int] = []

  def roll_back(self, entries: Iterable[Entry]) -> None:
    """Lets entries go back, and with each all later ones of its iterator that no step has used.

    Who holds one of these is stale, and so is who holds a void one. The rest of what they hold goes back as well.

    Args:
      entries: The entries. Those that are void, used or back already do not matter.
    """
    todo = list(entries)
    while True:
      todo += self._held_by_stale(lambda entry: entry.is_void)
      if not todo:
        break
      entry = todo.pop()
      if entry.is_void or entry.is_back or entry.used_at is not None:
        continue
      gone = self._going_back(entry)
      for one in gone:
        one.is_back = True
      todo += self._held_by_stale(lambda entry: entry.is_back)
    self.holders = [holder for holder in self.holders if not holder.is_stale]

  def _going_back(self, entry: Entry) -> list[Entry]:
    """Returns what goes back with an entry."""
    entries = entry.ledger.entries
    return [later for later in entries[entries.index(entry):] if later.used_at is None]

  def _held_by_stale(self, condition) -> list[Entry]:
    """Marks as stale who holds an entry for which the condition is true; returns all that they hold."""
    held = []
    for holder in self.holders:
      if not holder.is_stale and any(condition(entry) for entry in holder.entries):
        holder.is_stale = True
        held += self._also_going_back(holder)
    return held

  def _also_going_back(self, holder: Holder) -> list[Entry]:
    """Returns what goes back because a holder has become stale."""
    return holder.entries

  def give_back(self, holder: Holder) -> None:
    """A run ends without a record.

    Args:
      holder: The run.
    """
    holder.is_stale = True
    self.roll_back(holder.entries)

  def use(self, entries: Iterable[Entry]) -> None:
    """A step has got what was made of some entries, or a read beside the steps has got one.

    Args:
      entries: The entries.
    """
    self._clock += 1
    ledgers = set()
    for entry in entries:
      entry.used_at = self._clock
      ledgers.add(entry.ledger)
    moment = min(self._saves, default=self._clock)
    for ledger in ledgers:
      ledger.entries = [entry for entry in ledger.entries if entry.used_at is None or entry.used_at > moment]

  def begin_save(self) -> int:
    """Returns the moment of a save. What is used later counts as unused for it."""
    self._clock += 1
    self._saves.append(self._clock)
    return self._clock

  def end_save(self, moment: int) -> None:
    """Ends a save.

    Args:
      moment: What `begin_save` has returned.
    """
    self._saves.remove(moment)

  def saved(self, name: str, moment: int) -> tuple[iterator_model.Iterator, list[outcomes.Outcome]]:
    """Returns what a save writes of one iterator.

    Args:
      name: The source.
      moment: The moment of the save.
    """
    ledger = self.ledgers[name]
    return ledger.iterator, [
        entry.outcome for entry in ledger.entries if entry.used_at is None or entry.used_at > moment]
