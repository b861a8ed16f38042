# SPDX-License-Identifier: Apache-2.0
"""`python -m tensorflow.staging`: running programs with stages, the report of a graph, and the doctor."""
