# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.explain`: reports which nodes run ahead of the step and why others do not, as text or a picture."""
