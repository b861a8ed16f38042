# SPDX-License-Identifier: Apache-2.0
"""Every module with a public name: TensorFlow's API generator sees what importing this one loads."""

# ruff: noqa: F401
from tensorflow_staging.python import explain
from tensorflow_staging.python import prefetch_hook
from tensorflow_staging.python import prefetch_join
from tensorflow_staging.python import smart_stage_options
from tensorflow_staging.python import staged
from tensorflow_staging.python import target_nodes
