# SPDX-License-Identifier: Apache-2.0
"""The answer to scripts that look for "deeprec" in TensorFlow's version."""

_PACKAGE = "tensorflow"
_SUFFIX = ".deeprec"


def contain_deeprec() -> None:
  """Lets the version that `pkg_resources` reports of this package contain "deeprec", in this process.

  `tf.__version__`, pip and `importlib.metadata` still report the version as it is.
  """
  try:
    # Part of setuptools, which not every environment has; who asks for the version has imported it.
    import pkg_resources
  except ImportError:
    return
  distribution = pkg_resources.working_set.by_key.get(_PACKAGE)
  if distribution is not None and _SUFFIX not in distribution.version:
    distribution._version = distribution.version + _SUFFIX
