# SPDX-License-Identifier: Apache-2.0
"""The example of checkpoints.md saves what the page says."""

import textwrap

import page_examples


def test_the_example_saves_positions_and_records(tmp_path):
  (example, _), = page_examples.examples("docs/checkpoints.md")
  output = page_examples.run(
      example + textwrap.dedent(f"""
          saver = tf.compat.v1.train.Saver()
          with tf.compat.v1.Session() as sess:
            sess.run(iterator.initializer)
            with tf.make_prefetch_hook().running(sess):
              path = [saver.save(sess, {str(tmp_path / "model")!r}) for _ in range(4) if sess.run(record) >= 0][-1]
              saver.restore(sess, path)
              print(sess.run(record))
          """))
  assert output == "4\n"
