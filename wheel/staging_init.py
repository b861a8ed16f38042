# SPDX-License-Identifier: Apache-2.0
"""The code that this fork adds to TensorFlow for pipeline staging.

Users call it through `tensorflow` itself: `tf.staged`, `tf.make_prefetch_hook` and related names.
"""

# The source tree keeps this file in another folder than its package on purpose. Without an `__init__.py` in the folder
# `tensorflow_staging`, a program that runs in the root of the source tree still imports the installed package.

# TensorFlow's root imports the public modules of this package. Importing the root here first gives one order of
# loading, whichever of the two packages a program imports first: our modules never see a half-loaded
# `tensorflow.python`.
import tensorflow as _tensorflow  # noqa: F401
