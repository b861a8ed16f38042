# SPDX-License-Identifier: Apache-2.0
"""What this fork adds to TensorFlow: pipeline staging.

Users find everything in `tensorflow` itself: `tf.staged`, `tf.make_prefetch_hook` and their
neighbours. This package holds the code behind those names.
"""

# In the source tree this file stands apart from its package on purpose. There the folder `tensorflow_staging` has no
# `__init__.py`, so a program started from the source tree's root still imports the installed package.

# TensorFlow's root imports the public modules below this package. Importing it first gives one
# order of loading, whichever of the two packages a program names first: the modules here never
# meet a half-loaded `tensorflow.python`.
import tensorflow as _tensorflow  # noqa: F401
