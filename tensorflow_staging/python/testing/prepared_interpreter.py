# SPDX-License-Identifier: Apache-2.0
"""A program that imports TensorFlow, and forks for each program that it is told to run: see forked_programs.py."""

import forks
import tensorflow  # noqa: F401

if __name__ == "__main__":
  forks.serve(forks.run_program)
