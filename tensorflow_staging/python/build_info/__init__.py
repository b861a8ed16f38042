# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.build_info`: from what the wheel was built."""
