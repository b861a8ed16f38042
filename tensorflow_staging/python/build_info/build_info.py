# SPDX-License-Identifier: Apache-2.0
"""`tf.staging.build_info`: from what the wheel was built."""

import dataclasses
from typing import Optional

from tensorflow.python.util.tf_export import tf_export

from tensorflow_staging.python.build_info import build_values
from tensorflow_staging.python.build_info import kernel_loading  # noqa: F401  Acts when `import tensorflow` imports it.


@dataclasses.dataclass(frozen=True)
class BuildInfo:
  """From what a wheel was built. Two builds from the same sources say the same.

  Attributes:
    tensorflow_version: The version of TensorFlow on which the fork is based, such as "2.14.1".
    staging_version: The fork's own counter, such as "1".
    commit: The hash of the commit of the fork's repository; None if the sources were changed after
      it, or came without a repository.
    base: The official wheel whose libraries the wheel has: "cpu" for tensorflow-cpu, or "cuda" for
      tensorflow.
    chips: The GPUs for which all of the wheel's own code is machine code, by compute capability, such
      as ("sm_80", "sm_90"); empty without CUDA. For later GPUs, the driver compiles the rest.
    default_api_version: The API that `import tensorflow` gives unless TF_API_VERSION is set: 1 or 2.
    patches: The names of the patches to TensorFlow's own files, in the order in which they apply.
  """
  tensorflow_version: str
  staging_version: str
  commit: Optional[str]
  base: str
  chips: tuple[str, ...]
  default_api_version: int
  patches: tuple[str, ...]

  @property
  def version(self) -> str:
    """The version of the wheel, such as "2.14.1+staging.1"."""
    return f"{self.tensorflow_version}+staging.{self.staging_version}"


@tf_export("staging.build_info")
def build_info() -> BuildInfo:
  """Says from what this wheel was built.

  For example:

  ```python
  import tensorflow as tf

  info = tf.staging.build_info()
  print(info.version, info.base, info.commit)
  ```

  Returns:
    A frozen data class with the attributes `tensorflow_version`, `staging_version`, `version`,
    `commit`, `base`, `chips`, `default_api_version` and `patches`, which its own documentation explains.
  """
  return BuildInfo(**build_values.VALUES)
