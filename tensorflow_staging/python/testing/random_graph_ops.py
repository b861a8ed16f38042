# SPDX-License-Identifier: Apache-2.0
"""The ops of random graphs: the kinds of their inputs and outputs, and functions that add them to a graph.

Every value is of one of a few kinds, so that an op finds its inputs among the outputs of other ops. All numbers, floats
too, are small and whole, so that every result is exact whatever Grappler does. Only graphs that run without Grappler
use `inexact` ops.

| kind | values |
|---|---|
| `int`, `float`, `text`, `bool` | int64, float32, string, bool of shape [batch] |
| `matrix` | float32 of shape [batch, 2] |
| `ints` | int64 of shape [?] |
| `sparse_int`, `sparse_text` | SparseTensor of shape [batch, ?] |
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import cond_v2
from tensorflow.python.ops import while_v2

# Ops keep numbers below this.
LIMIT = 97


class Counters:
  """Python functions that count their calls; each adds its count to its argument."""

  def __init__(self):
    self._counts = {}
    self._numbers = itertools.count()

  def function(self) -> Callable[[np.ndarray], np.ndarray]:
    """Returns a new function with its own count."""
    number = next(self._numbers)

    def count(value: np.ndarray) -> np.ndarray:
      self._counts[number] = self._counts.get(number, 0) + 1
      return value + np.int64(self._counts[number])

    return count

  def reset(self) -> None:
    """Sets every count to 0."""
    self._counts.clear()


class OpContext(NamedTuple):
  """What an op may use besides its inputs."""

  rng: random.Random
  counters: Counters

  def seed(self) -> int:
    """Returns a seed for a random op."""
    return self.rng.randrange(1, 1000)

  def constant(self) -> int:
    """Returns a small positive integer."""
    return self.rng.randrange(1, 9)


class RandomOp(NamedTuple):
  """One way to compute a value from other values."""

  # The kinds of the output and of the inputs.
  output: str
  inputs: tuple[str, ...]
  # Adds the op to the default graph, given an OpContext and the inputs, and returns its output.
  add: Callable[..., Any]
  # How often the op is chosen, relative to the others of its family.
  weight: float = 1.0
  inexact: bool = False


def _whole(value: tf.Tensor) -> tf.Tensor:
  """Returns `value` modulo `LIMIT`."""
  return tf.math.floormod(value, tf.constant(LIMIT, value.dtype))


def _flat(value: tf.Tensor) -> tf.Tensor:
  return tf.reshape(value, [-1])


def _spread(like: tf.Tensor, scalar: tf.Tensor) -> tf.Tensor:
  """Repeats a scalar for each entry of `like`."""
  return tf.fill(tf.shape(like, out_type=tf.int64), tf.cast(scalar, tf.int64))


def _index(x: tf.Tensor, into: tf.Tensor) -> tf.Tensor:
  """Turns `x` into valid indices of a vector, which must not be empty."""
  return tf.math.floormod(x, tf.shape(into, out_type=tf.int64)[0])


def _with_values(sparse: tf.SparseTensor, values: tf.Tensor) -> tf.SparseTensor:
  return tf.SparseTensor(sparse.indices, values, sparse.dense_shape)


def _after(control: tf.Operation | tf.Tensor, value: tf.Tensor) -> tf.Tensor:
  with tf.control_dependencies([control]):
    return tf.identity(value)


def _cond_v2(ctx: OpContext, predicate: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  seed = ctx.seed()
  inside = ctx.rng.random() < 0.3

  def chosen() -> tf.Tensor:
    if not inside:
      return _whole(x * 2 + 1)
    noise = tf.random.uniform(tf.shape(x), maxval=LIMIT, dtype=tf.int64, seed=seed)
    return _whole(x + noise)

  return tf.ensure_shape(cond_v2.cond_v2(tf.reduce_any(predicate), chosen, lambda: _whole(x + y)), x.shape)


def _while_v2(ctx: OpContext, x: tf.Tensor) -> tf.Tensor:
  rounds = ctx.rng.randrange(1, 4)
  shapes = [tf.TensorShape([]), x.shape]
  _, result = while_v2.while_loop(
      lambda i, _: i < rounds, lambda i, value: (i + 1, _whole(value * 3 + 1)), [tf.constant(0), x],
      shape_invariants=shapes)
  return result


def _cond_v1(ctx: OpContext, predicate: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
  """Adds a tf.cond of version 1; sometimes its predicate is drawn, or a branch has a draw, a check or another cond."""
  chosen = tf.reduce_any(predicate)
  if ctx.rng.random() < 0.3:
    chosen = tf.random.uniform([], seed=ctx.seed()) < 0.5
  contents = ctx.rng.choice(["plain", "draw", "check", "cond", "cond", "while"])
  number, seed = ctx.constant(), ctx.seed()

  def branch() -> tf.Tensor:
    if contents == "draw":
      return _whole(x + tf.random.uniform(tf.shape(x), maxval=LIMIT, dtype=tf.int64, seed=seed))
    if contents == "check":
      with tf.control_dependencies([tf.debugging.assert_non_negative(x)]):
        return _whole(x + number)
    if contents == "cond":
      # If y is x, Grappler makes a dead tensor of x + y in a nested branch.
      inner = lambda: _whole(x + y + number)
      return tf.cond(tf.reduce_sum(y) > 5 * number, inner, lambda: _whole(x * number))
    if contents == "while":
      return _while_v1(ctx, x)
    return _whole(x + number)

  results = tf.cond(chosen, lambda: (branch(), y), lambda: (_whole(y * 2), x))
  # The second result may stay unused.
  return results[0] if ctx.rng.random() < 0.5 else _whole(results[0] * 2 + results[1])


def _cond_of_ops(ctx: OpContext, predicate: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
  """Adds a tf.cond of version 1 that yields no value: later ops wait for it."""
  chosen = tf.reduce_any(predicate)
  done = tf.cond(chosen, lambda: tf.group(tf.debugging.assert_non_negative(x)), tf.no_op)
  return _after(done, _whole(x + ctx.constant()))


def _cond_of_constants(ctx: OpContext, predicate: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
  """Adds a conditional of either version whose result depends on nothing but its predicate."""
  cond = tf.cond if ctx.rng.random() < 0.6 else cond_v2.cond_v2
  one, other = ctx.constant(), 10 * ctx.constant()
  chosen = cond(tf.reduce_any(predicate), lambda: tf.constant(one, tf.int64), lambda: tf.constant(other, tf.int64))
  return _whole(x + chosen)


def _while_v1(ctx: OpContext, x: tf.Tensor) -> tf.Tensor:
  """Adds a tf.while_loop of version 1; sometimes with a cond or another loop in its body."""
  rounds = ctx.rng.randrange(1, 3)
  contents = ctx.rng.choice(["plain", "plain", "cond", "while"])
  number = ctx.constant()

  def body(i: tf.Tensor, value: tf.Tensor, last: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    result = _whole(value + last + x)
    if contents == "cond":
      result = tf.cond(tf.reduce_sum(value) > number, lambda: _whole(value + number), lambda: result)
    if contents == "while":
      _, result = tf.while_loop(lambda j, _: j < 2, lambda j, inner: (j + 1, _whole(inner * 2 + last)), [0, value])
    return i + 1, result, value

  return tf.while_loop(lambda i, *_: i < rounds, body, [tf.constant(0), x, x])[1]


def _map_v1(ctx: OpContext, x: tf.Tensor) -> tf.Tensor:
  """Adds a tf.map_fn, which is a loop with tensor arrays."""
  number = ctx.constant()
  return tf.ensure_shape(tf.map_fn(lambda value: _whole(value * number + 1), x), x.shape)


def _table(ctx: OpContext, text: tf.Tensor) -> tf.Tensor:
  # Tables are initialized before the first step, so none of their ops, not even a constant, may depend on a step.
  with tf.control_dependencies(None):
    words = tf.lookup.KeyValueTensorInitializer(
        [f"word{i}" for i in range(4)], list(range(4)), tf.string, tf.int64)
    if ctx.rng.random() < 0.5:
      table = tf.lookup.StaticHashTable(words, default_value=ctx.constant())
    else:
      table = tf.lookup.StaticVocabularyTable(words, num_oov_buckets=2)
  return table.lookup(text)


def _counter(ctx: OpContext, x: tf.Tensor) -> tf.Tensor:
  counted = tf.numpy_function(ctx.counters.function(), [x], tf.int64)
  return _whole(tf.ensure_shape(counted, x.shape))


def _py_func(ctx: OpContext, x: tf.Tensor) -> tf.Tensor:
  add = np.int64(ctx.constant())
  added = tf.py_func(lambda value: value + add, [x], tf.int64, stateful=ctx.rng.random() < 0.5)
  return tf.ensure_shape(added, x.shape)


def _assert(ctx: OpContext, x: tf.Tensor) -> tf.Tensor:
  holds = tf.reduce_all(x >= 0)
  if ctx.rng.random() < 0.3:
    # In a TensorFlow 1 graph this adds a v1 cond.
    return _after(tf.debugging.Assert(holds, [x]), x)
  return _after(tf.raw_ops.Assert(condition=holds, data=[x]), x)


def _failing_assert(ctx: OpContext, x: tf.Tensor) -> tf.Tensor:
  """Adds a check that fails for about one record in seven."""
  unlucky = tf.equal(tf.math.floormod(tf.reduce_sum(x), 7), ctx.rng.randrange(7))
  return _after(tf.raw_ops.Assert(condition=tf.logical_not(unlucky), data=[x]), x)


def _print(ctx: OpContext, x: tf.Tensor) -> tf.Tensor:
  del ctx
  return _after(tf.print("record", x, output_stream="file:///dev/null"), x)


def _sparse_concat(ctx: OpContext, x: tf.SparseTensor, y: tf.SparseTensor) -> tf.SparseTensor:
  del ctx
  return tf.sparse.concat(1, [x, y])


def _top(ctx: OpContext, x: tf.Tensor) -> tf.Tensor:
  values, indices = tf.math.top_k(x, k=1)
  return _flat(_spread(x, values[0] + tf.cast(indices[0], tf.int64) * ctx.constant()))


_NUMBERS = [
    RandomOp("int", ("int", "int"), lambda ctx, x, y: _whole(x * ctx.constant() + y)),
    RandomOp("int", ("int", "int"), lambda ctx, x, y: tf.maximum(x, y) - tf.minimum(x, y)),
    RandomOp("int", ("int",), lambda ctx, x: tf.math.floordiv(x, ctx.constant())),
    RandomOp("int", ("int",), lambda ctx, x: tf.cast(
        tf.raw_ops.Bucketize(input=x, boundaries=[10.0, 20.0 + ctx.constant(), 40.0]), tf.int64)),
    RandomOp("int", ("float",), lambda ctx, x: tf.cast(_whole(x), tf.int64)),
    RandomOp("int", ("bool", "int", "int"), lambda ctx, b, x, y: tf.where(b, x, y)),
    RandomOp("int", ("int",), _top),
    RandomOp("int", ("matrix",), lambda ctx, m: tf.argmax(m, axis=1)),
    RandomOp("float", ("int",), lambda ctx, x: tf.cast(x, tf.float32)),
    RandomOp("float", ("float", "float"), lambda ctx, x, y: _whole(x * ctx.constant() + y)),
    RandomOp("float", ("matrix",), lambda ctx, m: tf.reduce_sum(m, axis=1)),
    RandomOp("float", ("matrix",), lambda ctx, m: tf.squeeze(tf.split(m, 2, axis=1)[1], axis=1)),
    RandomOp("matrix", ("float", "float"), lambda ctx, x, y: tf.concat(
        [tf.reshape(x, [-1, 1]), tf.expand_dims(y, 1)], axis=1)),
    RandomOp("matrix", ("matrix",), lambda ctx, m: tf.reverse(tf.transpose(tf.transpose(m)), axis=[1])),
    RandomOp("matrix", ("matrix",), lambda ctx, m: _whole(
        tf.matmul(m, [[1.0, 2.0], [ctx.constant(), 1.0]]))),
    RandomOp("bool", ("int", "int"), lambda ctx, x, y: x > y, weight=3.0),
    RandomOp("bool", ("bool", "bool"), lambda ctx, x, y: tf.logical_xor(x, tf.logical_not(y))),
    RandomOp("ints", ("int",), lambda ctx, x: tf.unique(x).y),
    RandomOp("ints", ("int", "bool"), lambda ctx, x, b: tf.boolean_mask(x, b)),
    RandomOp("ints", ("bool",), lambda ctx, b: _flat(tf.where(b))),
    RandomOp("ints", ("ints", "int"), lambda ctx, x, y: tf.concat([x, y, [ctx.constant()]], axis=0)),
    RandomOp("int", ("int",), lambda ctx, x: tf.cast(tf.unique(x).idx, tf.int64)),
    RandomOp("int", ("ints", "int"), lambda ctx, x, y: tf.gather(
        tf.concat([x, [1]], axis=0), _index(y, tf.concat([x, [1]], axis=0)))),
    RandomOp("int", ("int", "ints"), lambda ctx, x, y: x + _spread(x, _whole(tf.reduce_sum(y)))),
    RandomOp("int", ("int",), lambda ctx, x: tf.sort(x)),
    # The stacked values differ on purpose. If any output of a node is stacked on itself, Grappler in TensorFlow 2.14.1
    # uses the node's first output in its place (ReplacePackWithTileReshape), with or without a stage.
    RandomOp("int", ("int", "int"), lambda ctx, x, y: tf.unstack(tf.stack([x, y + 1]))[1] + x),
    RandomOp("int", ("int",), lambda ctx, x: tf.identity_n([x, x])[ctx.rng.randrange(2)]),
]

_TEXT = [
    RandomOp("text", ("int",), lambda ctx, x: tf.strings.join(["word", tf.as_string(x)])),
    RandomOp("text", ("text", "text"), lambda ctx, x, y: tf.strings.join([x, y], separator=" ")),
    RandomOp("text", ("text",), lambda ctx, x: tf.strings.regex_replace(x, "[0-3]", "a")),
    RandomOp("text", ("text",), lambda ctx, x: tf.strings.upper(tf.strings.substr(x, 0, 8))),
    RandomOp("int", ("text",), lambda ctx, x: tf.string_to_hash_bucket(x, LIMIT)),
    RandomOp("int", ("text",), lambda ctx, x: tf.string_to_hash_bucket_fast(x, LIMIT), weight=2.0),
    RandomOp("int", ("text",), lambda ctx, x: tf.string_to_hash_bucket_strong(x, LIMIT, [1, 2])),
    RandomOp("int", ("text",), lambda ctx, x: tf.cast(_whole(tf.strings.length(x)), tf.int64)),
    RandomOp("int", ("int",), lambda ctx, x: tf.string_to_number(tf.as_string(x), tf.int64)),
    RandomOp("bool", ("text",), lambda ctx, x: tf.strings.regex_full_match(x, ".*[1-4].*")),
    RandomOp("sparse_text", ("text",), lambda ctx, x: tf.compat.v1.string_split(x)),
    RandomOp("int", ("text",), _table, weight=1.5),
]

_SPARSE = [
    RandomOp("sparse_int", ("sparse_text",), lambda ctx, s: _with_values(
        s, tf.string_to_hash_bucket_fast(s.values, LIMIT))),
    RandomOp("sparse_int", ("sparse_int",), lambda ctx, s: _with_values(s, _whole(s.values * 2 + 1))),
    RandomOp("sparse_int", ("sparse_int",), lambda ctx, s: tf.sparse.retain(s, s.values > ctx.constant())),
    RandomOp("sparse_int", ("sparse_int", "sparse_int"), _sparse_concat),
    RandomOp("sparse_text", ("sparse_text", "sparse_text"), _sparse_concat),
    RandomOp("sparse_int", ("sparse_text", "text"), lambda ctx, s, x: tf.sparse.cross_hashed(
        [s, tf.expand_dims(x, 1)], num_buckets=LIMIT)),
    RandomOp("sparse_int", ("sparse_int",), lambda ctx, s: tf.sparse.fill_empty_rows(s, ctx.constant())[0]),
    RandomOp("int", ("sparse_int",), lambda ctx, s: _whole(tf.reduce_sum(tf.sparse.to_dense(s), axis=1))),
    RandomOp("int", ("int", "sparse_int"), lambda ctx, x, s: x + _spread(
        x, _whole(tf.sparse.reduce_sum(s)))),
    RandomOp("text", ("sparse_text",), lambda ctx, s: tf.strings.reduce_join(
        tf.sparse.to_dense(s, default_value="_"), axis=1)),
]

_RANDOM = [
    RandomOp("int", ("int",), lambda ctx, x: tf.random.uniform(
        tf.shape(x), maxval=LIMIT, dtype=tf.int64, seed=ctx.seed()), weight=1.5),
    RandomOp("int", ("int",), lambda ctx, x: tf.random.shuffle(x, seed=ctx.seed())),
    RandomOp("float", ("float",), lambda ctx, x: x + tf.floor(
        8 * tf.random.truncated_normal(tf.shape(x), seed=ctx.seed()))),
    RandomOp("int", ("matrix",), lambda ctx, m: _flat(
        tf.random.categorical(m, 1, seed=ctx.seed()))),
    RandomOp("int", ("int",), lambda ctx, x: tf.random.stateless_uniform(
        tf.shape(x), seed=tf.stack([x[0], 5]), maxval=LIMIT, dtype=tf.int64)),
]

_EFFECTS = [
    RandomOp("int", ("int",), _counter),
    RandomOp("int", ("int",), _py_func, weight=0.5),
    RandomOp("int", ("int",), _assert),
    RandomOp("int", ("int",), _print, weight=0.3),
]

_FAILING = [RandomOp("int", ("int",), _failing_assert)]

_CONTROL_FLOW = [
    RandomOp("int", ("bool", "int", "int"), _cond_v2),
    RandomOp("int", ("int",), _while_v2),
    RandomOp("int", ("bool", "int", "int"), _cond_v1, weight=1.5),
    RandomOp("int", ("bool", "int"), _cond_of_ops, weight=0.5),
    RandomOp("int", ("bool", "int"), _cond_of_constants),
    RandomOp("int", ("int",), _while_v1, weight=0.7),
    RandomOp("int", ("int",), _map_v1, weight=0.3),
]

_INEXACT = [
    RandomOp("float", ("float",), lambda ctx, x: tf.sin(x * 0.1) + tf.sqrt(tf.abs(x)), inexact=True),
    RandomOp("matrix", ("matrix",), lambda ctx, m: tf.nn.softmax(m), inexact=True),
    RandomOp("float", ("float",), lambda ctx, x: tf.nn.dropout(x, rate=0.3, seed=ctx.seed()), inexact=True),
    RandomOp("matrix", ("matrix",), lambda ctx, m: tf.random.normal(
        tf.shape(m), seed=ctx.seed()) * m, inexact=True),
]

# Each family of ops by its name, with the weight with which it is chosen.
FAMILIES: dict[str, tuple[float, list[RandomOp]]] = {
    "numbers": (10, _NUMBERS),
    "text": (8, _TEXT),
    "sparse": (6, _SPARSE),
    "random": (1.5, _RANDOM),
    "effects": (0.8, _EFFECTS),
    "failing": (1, _FAILING),
    "control flow": (0.8, _CONTROL_FLOW),
    "inexact": (1.5, _INEXACT),
}


def scalar(value: tf.Tensor | tf.SparseTensor) -> tf.Tensor:
  """Reduces a value to an int64 scalar that differs for most different values."""
  if isinstance(value, tf.SparseTensor):
    value = value.values
  if value.dtype == tf.string:
    value = tf.string_to_hash_bucket_fast(value, LIMIT)
  elif value.dtype.is_floating:
    # The sum of integers is exact.
    value = tf.floor(value)
  return tf.reduce_sum(tf.cast(value, tf.int64))
