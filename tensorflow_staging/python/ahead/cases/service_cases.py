# SPDX-License-Identifier: Apache-2.0
"""Steps with stages that read a tf.data service, compared with steps that read the data; run by ahead/ahead_test.py."""

import contextlib

import cases
import tensorflow as tf

service = tf.data.experimental.service
STRATEGY = tf.distribute.MirroredStrategy(["/cpu:0"])


@contextlib.contextmanager
def running():
  """Runs a dispatcher and a worker on the loopback; yields the address for steps."""
  dispatcher = service.DispatchServer(service.DispatcherConfig(port=0))
  address = dispatcher.target.split("://")[1]
  worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=address, heartbeat_interval_ms=100))
  try:
    yield dispatcher.target
  finally:
    worker._stop()
    dispatcher._stop()


def words():
  """Returns batches of words; a worker of the service makes them."""
  numbers = tf.data.Dataset.range(40).batch(4, drop_remainder=True)
  return numbers.map(lambda x: tf.strings.join(["word", tf.as_string(x)], " "))


def of_service(address):
  return words().apply(service.distribute(service.ShardingPolicy.OFF, address))


def make_step(wrap):
  total = tf.Variable(tf.zeros([], tf.int64))

  def train(batch):
    total.assign_add(tf.reduce_sum(tf.strings.to_hash_bucket_fast(batch, 1000)))
    return total.read_value()

  return wrap(tf.function(lambda iterator: STRATEGY.run(train, args=(next(iterator),))))


def trained(wrap, data):
  """Returns what each step of two epochs returns, and the step."""
  with STRATEGY.scope():
    step = make_step(wrap)
  values = []
  for _ in range(2):
    iterator = iter(STRATEGY.experimental_distribute_dataset(data))
    with contextlib.suppress(tf.errors.OutOfRangeError):
      while True:
        values.append(int(step(iterator)))
  return values, step


def case_the_rest_of_the_preparation_runs_ahead_of_a_step_that_reads_a_service():
  expected, _ = trained(lambda step: step, words())
  assert len(expected) == 20
  with running() as address:
    values, step = trained(tf.staging.ahead, of_service(address))
  assert values == expected, (values, expected)
  assert step.why_not is None, step.why_not


def case_fit_reads_a_service():

  def losses(data, callbacks):
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(3)
    model = tf.keras.Sequential([
        tf.keras.Input((), dtype=tf.string), tf.keras.layers.Hashing(50), tf.keras.layers.Embedding(50, 4),
        tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    labeled = data.map(lambda batch: (batch, tf.cast(tf.strings.length(batch), tf.float32)))
    return model.fit(labeled, epochs=2, verbose=0, callbacks=callbacks).history

  expected = losses(words(), [])
  callback = tf.staging.SmartStage()
  with running() as address:
    assert losses(of_service(address), [callback]) == expected
  assert callback._steps["train_function"].why_not is None


cases.main(globals())
