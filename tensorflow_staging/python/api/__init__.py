# SPDX-License-Identifier: Apache-2.0
"""What users import: the public names and the import paths of DeepRec."""
