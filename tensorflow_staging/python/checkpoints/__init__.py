# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.save_iterators`: checkpoints from which training resumes with exactly the next record."""
