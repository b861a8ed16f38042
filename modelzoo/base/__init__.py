# SPDX-License-Identifier: Apache-2.0
"""What the models share: files, input, stages, training, evaluation, the command line."""
