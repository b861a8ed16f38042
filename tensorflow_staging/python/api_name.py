# SPDX-License-Identifier: Apache-2.0
"""What a program calls the API by: `tf.staging` in the fork, and `tensorflow_staging` beside an official TensorFlow."""

import importlib.util

# Only the plugin's wheel has this module.
IS_PLUGIN = importlib.util.find_spec("tensorflow_staging.built_for") is not None

API = "tensorflow_staging" if IS_PLUGIN else "tf.staging"
# The package that `python -m` runs, and that the lines printed for a user begin with.
PACKAGE = "tensorflow_staging" if IS_PLUGIN else "tensorflow.staging"
# What a user types in front of a command.
PROGRAM = f"python -m {PACKAGE}"
