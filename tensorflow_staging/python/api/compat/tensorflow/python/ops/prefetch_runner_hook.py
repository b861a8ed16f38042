# SPDX-License-Identifier: Apache-2.0
"""DeepRec's import path of the hook's class."""

from tensorflow_staging.python.session.prefetch_hook import PrefetchRunnerHook

__all__ = ["PrefetchRunnerHook"]
