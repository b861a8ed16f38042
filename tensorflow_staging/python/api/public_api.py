# SPDX-License-Identifier: Apache-2.0
"""Imports every module that exports a public name, so that TensorFlow's API generator finds the names."""

# ruff: noqa: F401
from tensorflow_staging.python.ahead import ahead
from tensorflow_staging.python.ahead import keras_callback
from tensorflow_staging.python.backup import backup_callback
from tensorflow_staging.python.build_info import build_info
from tensorflow_staging.python.checkpoints import saved_iterators
from tensorflow_staging.python.checkpoints import worker_checkpoint_hook
from tensorflow_staging.python.deeprec import names
from tensorflow_staging.python.explain import explain
from tensorflow_staging.python.exports import unstaged
from tensorflow_staging.python.session import discard
from tensorflow_staging.python.session import prefetch_hook
from tensorflow_staging.python.smart_stage import async_embedding_mark
from tensorflow_staging.python.smart_stage import smart_stage_config
from tensorflow_staging.python.smart_stage import smart_stage_options
from tensorflow_staging.python.smart_stage import stale_variables
from tensorflow_staging.python.smart_stage import target_nodes
from tensorflow_staging.python.stages import prefetch_join
from tensorflow_staging.python.stages import staged
from tensorflow_staging.python.stats import stage_stats
from tensorflow_staging.python.stats import stats_hook
from tensorflow_staging.python.streams import stream
