# SPDX-License-Identifier: Apache-2.0
"""The examples of checkpoints.md do what the page says."""

import textwrap

import page_examples


def test_the_example_saves_positions_and_records(tmp_path):
  (example, _), _ = page_examples.examples("docs/checkpoints.md")
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


def test_the_hooks_of_a_worker_save_beside_the_chief(tmp_path):
  _, (example, _) = page_examples.examples("docs/checkpoints.md")
  page_examples.run(
      "import tensorflow as tf\n" + example + textwrap.dedent(f"""
          dataset = tf.data.Dataset.range(100)
          iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
          record = iterator.get_next()
          step = tf.compat.v1.assign_add(tf.compat.v1.train.get_or_create_global_step(), 1)
          scaffold = tf.compat.v1.train.Scaffold(local_init_op=iterator.initializer)
          creator = tf.compat.v1.train.ChiefSessionCreator(scaffold)
          hooks = hooks_of_worker(1, {str(tmp_path)!r})
          with tf.compat.v1.train.MonitoredSession(creator, hooks) as sess:
            sess.run([record, step])
          """))
  assert (tmp_path / "worker_1.iterators-1.index").exists()
