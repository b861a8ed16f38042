# SPDX-License-Identifier: Apache-2.0
"""Which API `import tensorflow` gives, which decides whether programs of TensorFlow 2 run."""

import os
from collections.abc import Iterator

from tensorflow_staging.python.doctor import finding

_VARIABLE = "TF_API_VERSION"
_IN_2 = "where Keras takes tf.staging.SmartStage(), and tf.staging.ahead() a tf.function"


def check_root(default: int) -> Iterator[finding.Finding]:
  """Says which API programs get with the environment of this process, and how they get the other one.

  Args:
    default: The one without the variable, 1 or 2.
  """
  version = int(os.environ.get(_VARIABLE, default))
  why = f"{_VARIABLE}={version}" if _VARIABLE in os.environ else f"the default without {_VARIABLE}"
  other = f"{_VARIABLE}={3 - version} gives that of TensorFlow {3 - version}"
  texts = {1: f"{why}; {other}, {_IN_2}", 2: f"{why}, {_IN_2}; {other}"}
  yield finding.Finding("API", f"import tensorflow gives that of TensorFlow {version}: {texts[version]}.")
