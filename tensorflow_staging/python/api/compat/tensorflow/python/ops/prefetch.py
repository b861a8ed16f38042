# SPDX-License-Identifier: Apache-2.0
"""DeepRec's import path of the staging functions."""

from tensorflow_staging.python.session.prefetch_hook import make_prefetch_hook
from tensorflow_staging.python.stages.prefetch_join import prefetch_join
from tensorflow_staging.python.stages.staged import staged

__all__ = ["make_prefetch_hook", "prefetch_join", "staged"]
