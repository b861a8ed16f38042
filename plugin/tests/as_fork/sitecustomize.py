# SPDX-License-Identifier: Apache-2.0
"""Python imports this first in the programs of `fork_cases_test.py`: gives them the `tf.staging` that they expect."""

import tensorflow as tf

import tensorflow_staging

tf.staging = tensorflow_staging
