# SPDX-License-Identifier: Apache-2.0
import email.parser
import email.policy

import identity
import pytest

_STOCK = """\
Metadata-Version: 2.1
Name: tensorflow-cpu
Version: 2.14.1
Summary: TensorFlow is an open source machine learning framework for everyone.
Home-page: https://www.tensorflow.org/
Download-URL: https://github.com/tensorflow/tensorflow/tags
Author: Google Inc.
Author-email: packages@tensorflow.org
License: Apache 2.0
Keywords: tensorflow tensor machine learning
Classifier: Environment :: GPU :: NVIDIA CUDA :: 11.8
Classifier: Programming Language :: Python :: 3.9
Classifier: Programming Language :: Python :: 3.11
Requires-Python: >=3.9
Description-Content-Type: text/markdown
License-File: LICENSE
Requires-Dist: numpy (<2.0.0,>=1.23.5)

The official description, with images of its own.
"""


@pytest.fixture(params=[False, True], ids=["cpu", "cuda"])
def cuda(request):
  return request.param


@pytest.fixture
def metadata(cuda):
  message = email.parser.Parser(policy=email.policy.compat32).parsestr(_STOCK)
  identity.adapt(message, "2.14.1+staging.1", "tensorflow-cpu 2.14.1", "3.11", cuda)
  return email.parser.Parser(policy=email.policy.compat32).parsestr(message.as_string())


def test_it_names_the_fork_and_nobody_else(metadata):
  assert metadata["Name"] == "tensorflow"
  assert metadata["Version"] == "2.14.1+staging.1"
  assert metadata["Maintainer"] == "The maintainers of this fork"
  headers = " ".join(metadata.values())
  for other in ("Google", "packages@tensorflow.org", "everyone", "tensorflow/tags"):
    assert other not in headers
  assert metadata["Author"] is None and metadata["Home-page"] is None


def test_classifiers_are_true(metadata, cuda):
  classifiers = metadata.get_all("Classifier")
  assert ("Environment :: GPU :: NVIDIA CUDA :: 11.8" in classifiers) == cuda
  prefix = "Programming Language :: Python :: 3."
  versions = [each.rpartition(" ")[2] for each in classifiers if each.startswith(prefix)]
  assert versions == ["3.11"]
  assert classifiers == sorted(classifiers)


def test_what_it_requires_stays(metadata):
  assert metadata["Requires-Python"] == ">=3.9"
  assert metadata.get_all("Requires-Dist") == ["numpy (<2.0.0,>=1.23.5)"]
  assert metadata.get_all("License-File") == ["LICENSE", "NOTICE"]


def test_the_description_is_ours(metadata):
  text = metadata.get_payload()
  assert text.startswith("# TensorFlow with pipeline staging") and "tensorflow-cpu 2.14.1 with `tf.staged`" in text
  assert "official description" not in text
  assert metadata.get_all("Description-Content-Type") == ["text/markdown"]
