# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.stats` and `tf.staging.StatsHook`: what the stages of a session do while it runs."""
