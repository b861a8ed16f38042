# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.build_info()` is true."""

import dataclasses
import importlib.metadata
import pathlib
import re

import pytest
import tensorflow as tf
from tensorflow.python.platform import build_info as stock_build_info

from tensorflow_staging.python.testing import test_util


def test_the_versions_are_those_of_the_distribution():
  info = tf.staging.build_info()
  assert info.version == importlib.metadata.version("tensorflow")
  assert info.tensorflow_version == tf.__version__.partition("+")[0]
  assert info.version == f"{info.tensorflow_version}+staging.{info.staging_version}"


def test_the_patches_are_those_of_the_series():
  series = (test_util.ROOT / "patches/series").read_text().splitlines()
  assert list(tf.staging.build_info().patches) == [line for line in series if line and not line.startswith("#")]


def test_the_base_and_the_api_are_those_of_the_wheel():
  info = tf.staging.build_info()
  assert (info.base == "cuda") == stock_build_info.build_info["is_cuda_build"]
  root = pathlib.Path(tf.__file__).read_text()
  assert re.search(r'get\("TF_API_VERSION", "(\d)"\)', root)[1] == str(info.default_api_version)


def test_the_chips_are_those_of_a_wheel_with_cuda():
  info = tf.staging.build_info()
  assert bool(info.chips) == (info.base == "cuda")
  assert all(re.fullmatch(r"sm_\d{2,3}", chip) for chip in info.chips)


def test_the_commit_is_a_hash_or_unknown():
  commit = tf.staging.build_info().commit
  assert commit is None or re.fullmatch(r"[0-9a-f]{40}", commit)


def test_the_information_cannot_be_changed():
  with pytest.raises(dataclasses.FrozenInstanceError):
    tf.staging.build_info().base = "none"
