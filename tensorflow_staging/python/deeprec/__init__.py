# SPDX-License-Identifier: Apache-2.0
"""What DeepRec's own scripts ask of a TensorFlow beside stages: `tf.staging.use_deeprec_names`."""
