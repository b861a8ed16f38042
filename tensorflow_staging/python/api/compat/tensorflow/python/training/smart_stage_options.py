# SPDX-License-Identifier: Apache-2.0
"""DeepRec's import path of `SmartStageOptions`."""

from tensorflow_staging.python.smart_stage.smart_stage_options import SmartStageOptions

__all__ = ["SmartStageOptions"]
