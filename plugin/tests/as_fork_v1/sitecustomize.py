# SPDX-License-Identifier: Apache-2.0
"""Python imports this first in the fork's tests of sessions: gives them the fork's names and TensorFlow 1's API."""

import importlib
import sys

import tensorflow

import tensorflow_staging

_NAMES = ("SmartStageOptions", "make_prefetch_hook", "prefetch_join", "staged")

_v1 = tensorflow.compat.v1
_v1.disable_v2_behavior()
_roots = [_v1, importlib.import_module("tensorflow.compat.v1")]
# What TensorFlow wraps around a module looks names up in that.
_roots += [root._tfmw_wrapped_module for root in _roots if hasattr(root, "_tfmw_wrapped_module")]
for _root in _roots:
  for _name in _NAMES:
    setattr(_root, _name, getattr(tensorflow_staging, _name))
  _root.staging = tensorflow_staging
_v1.train.mark_target_node = tensorflow_staging.mark_target_node
_v1.compat = tensorflow.compat
_v1.__path__ = tensorflow.__path__
sys.modules["tensorflow"] = _v1
