# SPDX-License-Identifier: Apache-2.0
"""The names that users import: the public API and the import paths of DeepRec."""
