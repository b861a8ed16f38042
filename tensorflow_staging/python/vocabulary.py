# SPDX-License-Identifier: Apache-2.0
"""The names and numbers that Python shares with core/framework/vocabulary.h, which explains each of them.

`vocabulary_test` compares the two files.
"""

PUT_OP = "TensorBufferPut"
TAKE_OP = "TensorBufferTake"
CANCEL_OP = "TensorBufferCancel"
RESUME_OP = "TensorBufferResume"
CLOSE_OP = "TensorBufferClose"
SIZE_OP = "TensorBufferSize"
STATS_OP = "TensorBufferStats"
DISCARD_OP = "TensorBufferDiscard"
BUFFER_OPS = (
  PUT_OP,
  TAKE_OP,
  CANCEL_OP,
  RESUME_OP,
  CLOSE_OP,
  SIZE_OP,
  STATS_OP,
  DISCARD_OP,
)

SHARED_NAME_ATTR = "shared_name"
CAPACITY_ATTR = "capacity"
CAPACITY_BYTES_ATTR = "capacity_bytes"
DEVICE_CAPACITY_BYTES_ATTR = "device_capacity_bytes"
FED_OUTPUTS_ATTR = "_staging_fed_outputs"
FEED_VALUE_ATTR = "_staging_feed_value"
TARGET_ATTR = "_staging_target"
MAY_BE_STALE_ATTR = "_staging_may_be_stale"
EMBEDDING_ATTR = "_staging_embedding"
STREAM_ATTR = "_stream_id"
IS_ORDERED_ATTR = "_staging_is_ordered"
STAYS_IN_STEP_ATTR = "_staging_stays_in_step"
AWAITS_INITIALIZER_ATTR = "_staging_awaits_initializer"

ITERATOR_INITIALIZER_OPS = ("MakeIterator", "MultiDeviceIteratorInit")

AUTOTUNE = -1
MAX_THREADS = 4096

DEFAULT_STAGE_NAME = "prefetch"
DEFAULT_CAPACITY = 1
DEFAULT_TIMEOUT_MILLIS = 300000
