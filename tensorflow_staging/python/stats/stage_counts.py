# SPDX-License-Identifier: Apache-2.0
"""What has been counted of one stage, of a session or of a step of `tf.staging.ahead`."""

from typing import Any
from typing import NamedTuple
from typing import Optional


class StageCounts(NamedTuple):
  """What has been counted of one stage up to a moment.

  Attributes:
    runner: The counters of its runner, since the stage was started.
    buffer: The statistics of its buffer, since that was created.
    earlier: Those of the buffer when the stage was started; None if it was new.
    cores_busy: Which part of the time since then the cores were busy, from 0 to 1; None if that is unknown.
    own_busy: Which part of that time this process itself kept them busy.
  """

  runner: dict[str, Any]
  buffer: dict[str, Any]
  earlier: Optional[dict[str, Any]]
  cores_busy: Optional[float]
  own_busy: Optional[float]
