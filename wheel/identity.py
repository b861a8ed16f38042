# SPDX-License-Identifier: Apache-2.0
"""Says in a wheel's METADATA whose it is: the fork's maintainers', and for what it is made.

The base wheel's METADATA names its own authors, pages and files, which have no part in the fork.
"""

from __future__ import annotations

import email.message

NAME = "tensorflow"
_SUMMARY = "TensorFlow with pipeline staging: input that runs ahead of the training step."
_MAINTAINER = "The maintainers of this fork"
# The page of the fork. A copy that is published names its own; without one, the wheel names none.
_PAGE = ""

# Headers that tell where the base wheel comes from, and who is to be asked about it.
_OF_BASE = (
    "Home-page", "Download-URL", "Author", "Author-email", "Maintainer", "Maintainer-email", "Project-URL", "Keywords",
    "Summary", "Classifier", "Description-Content-Type",
)

_CLASSIFIERS = (
    "Development Status :: 4 - Beta",
    "Intended Audience :: Developers",
    "Intended Audience :: Science/Research",
    "License :: OSI Approved :: Apache Software License",
    "Operating System :: POSIX :: Linux",
    "Programming Language :: C++",
    "Programming Language :: Python :: 3",
    "Programming Language :: Python :: 3 :: Only",
    "Topic :: Scientific/Engineering :: Artificial Intelligence",
)
_CUDA_CLASSIFIER = "Environment :: GPU :: NVIDIA CUDA :: 11.8"

_DESCRIPTION = """\
# TensorFlow with pipeline staging

A fork of TensorFlow: {base} with `tf.staged` and SmartStage, which run a part of the graph, such as reading and \
hashing, ahead of the training step. It speeds up graph-mode training that waits for its input. It is not a release by \
the TensorFlow Authors.

It installs as `tensorflow`. Do not install the official `tensorflow` or `tensorflow-cpu` beside it: they use the same \
folder.

```python
import tensorflow as tf

features = tf.staged(iterator.get_next(), capacity=4)
# ... the model, unchanged ...
with tf.train.MonitoredTrainingSession(hooks=[tf.make_prefetch_hook()]) as sess:
  ...
```

`import tensorflow` gives TensorFlow 1's API, or TensorFlow 2's with `TF_API_VERSION=2`. \
`python -m tensorflow.staging doctor` checks the installation. What TensorFlow itself offers is documented at \
<https://www.tensorflow.org/>.
"""


def adapt(metadata: email.message.Message, version: str, base: str, python: str, cuda: bool) -> None:
  """Gives METADATA our name, version, maintainers, classifiers and description; what it requires stays.

  Args:
    metadata: The METADATA, changed in place.
    version: The version of the wheel.
    base: The official wheel that it is built on, as in "tensorflow-cpu 2.14.1".
    python: The Python for which it is built, as in "3.11".
    cuda: Whether the wheel has CUDA kernels.
  """
  kept = [(name, value) for name, value in metadata.items() if name not in _OF_BASE]
  for name in set(metadata.keys()):
    del metadata[name]
  for name, value in kept:
    metadata[name] = {"Name": NAME, "Version": version}.get(name, value)
  metadata["Summary"] = _SUMMARY
  metadata["Maintainer"] = _MAINTAINER
  if _PAGE:
    metadata["Project-URL"] = f"Homepage, {_PAGE}"
  classifiers = [*_CLASSIFIERS, f"Programming Language :: Python :: {python}", *[_CUDA_CLASSIFIER] * cuda]
  for classifier in sorted(classifiers):
    metadata["Classifier"] = classifier
  metadata["License-File"] = "NOTICE"
  metadata["Description-Content-Type"] = "text/markdown"
  metadata.set_payload(_DESCRIPTION.format(base=base))
