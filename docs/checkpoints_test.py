# SPDX-License-Identifier: Apache-2.0
"""The example of checkpoints.md saves what the page says."""

import pathlib
import re
import textwrap

from tensorflow_staging.python.testing import test_util

_TEXT = (pathlib.Path(__file__).parent / "checkpoints.md").read_text()


def test_the_example_saves_positions_and_records(tmp_path):
  example = re.search(r"```python\n(.*?)```", _TEXT, re.DOTALL)[1]
  output = test_util.run_program(
      example + textwrap.dedent(f"""
          saver = tf.compat.v1.train.Saver()
          with tf.compat.v1.Session() as sess:
            sess.run(iterator.initializer)
            with tf.make_prefetch_hook().running(sess):
              path = [saver.save(sess, {str(tmp_path / "model")!r}) for _ in range(4) if sess.run(record) >= 0][-1]
              saver.restore(sess, path)
              print(sess.run(record))
          """), tmp_path, api_version="1")
  assert output.split()[-1] == "4"
