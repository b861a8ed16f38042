# SPDX-License-Identifier: Apache-2.0
"""How far a `fit` has come, as its backups have it."""

import dataclasses
import json
from typing import Optional

from tensorflow.python.trackable import python_state


@dataclasses.dataclass
class Position(python_state.PythonState):
  """How far a `fit` has come, and what the program has to have in common with the one that is resumed.

  Attributes:
    epoch: The epoch of the next step.
    step: How many steps that epoch has behind it.
    steps: How many steps an epoch has, if Keras has found that out. A step that only finds the end of the data may
      change the model.
    continues: Whether the next step reads the iterator of the backup; otherwise, it is the first one of a new iterator.
    steps_seen: How many steps have read the iterator, as Keras 3 counts them.
    num_variables: How many variables the backup has.
    num_metrics: How many of them are those of metrics.
  """

  epoch: int = 0
  step: int = 0
  steps: Optional[int] = None
  continues: bool = True
  steps_seen: int = 0
  num_variables: int = 0
  num_metrics: int = 0

  def serialize(self) -> str:
    return json.dumps({field.name: getattr(self, field.name) for field in dataclasses.fields(self)})

  def deserialize(self, string_value: bytes) -> None:
    for name, value in json.loads(string_value).items():
      setattr(self, name, value)
