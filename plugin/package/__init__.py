# SPDX-License-Identifier: Apache-2.0
"""Stages for an official TensorFlow: the part of a training step that needs no variable runs ahead of it.

```python
model.fit(data, callbacks=[tensorflow_staging.SmartStage()])  # Keras
step = tensorflow_staging.ahead(step)                         # a tf.function with a tf.data.Iterator
```
"""

# Our modules never see a half-loaded TensorFlow, whichever of the two a program imports first.
import tensorflow as _tensorflow  # noqa: F401

from tensorflow_staging import native_library as _native_library

_native_library.load()

# pylint: disable=g-import-not-at-top,wrong-import-position
from tensorflow_staging.reports import explain  # noqa: E402

from tensorflow_staging import session_feeds as _session_feeds  # noqa: E402
from tensorflow_staging.python.ahead import keras_compile as _keras_compile  # noqa: E402
from tensorflow_staging.python.ahead.ahead import ahead  # noqa: E402
from tensorflow_staging.python.ahead.keras_callback import SmartStage  # noqa: E402
from tensorflow_staging.python.backup.backup_callback import BackupAndRestore  # noqa: E402
from tensorflow_staging.python.exports.unstaged import unstaged  # noqa: E402
from tensorflow_staging.python.session.discard import discard  # noqa: E402
from tensorflow_staging.python.session.prefetch_hook import make_prefetch_hook  # noqa: E402
from tensorflow_staging.python.smart_stage.smart_stage_config import smart_stage_config  # noqa: E402
from tensorflow_staging.python.smart_stage.smart_stage_options import SmartStageOptions  # noqa: E402
from tensorflow_staging.python.smart_stage.target_nodes import mark_target_node  # noqa: E402
from tensorflow_staging.python.stages.prefetch_join import prefetch_join  # noqa: E402
from tensorflow_staging.python.stages.staged import staged  # noqa: E402
from tensorflow_staging.python.stats.stage_stats import stats  # noqa: E402

_keras_compile.watch()
_session_feeds.watch()

__all__ = [
    "BackupAndRestore", "SmartStage", "SmartStageOptions", "ahead", "discard", "explain", "make_prefetch_hook",
    "mark_target_node", "prefetch_join", "smart_stage_config", "staged", "stats", "unstaged"
]
