# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.explain`: what runs ahead of the step, and why not more, as text and as a picture."""
