# SPDX-License-Identifier: Apache-2.0
"""`python -m tensorflow.staging`: the report of a graph in a file, and the doctor."""
