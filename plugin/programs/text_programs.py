# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Text's tokenizers in a Keras 3 model."""

import keras
import numpy as np
import tensorflow as tf
import tensorflow_text
from comparison import main
from comparison import program
from comparison import result

_WORDS = ["the", "good", "bad", "film", "plot", "##s"]
_RANDOM = np.random.RandomState(0)
_TEXTS = [" ".join(_RANDOM.choice(["the", "good", "bads", "Films", "plot!"], n % 7 + 1)) for n in range(64)]
_LABELS = np.array([["good" in text] for text in _TEXTS]).astype("float32")


class Tokens(keras.layers.Layer):
  """Makes 8 tokens of each text."""

  def __init__(self, tokenize):
    super().__init__(dtype="int64")
    self.tokenize = tokenize
    self.supports_jit = False

  def call(self, texts):
    return self.tokenize(texts).to_tensor(shape=[None, 8])

  def compute_output_spec(self, texts):
    return keras.KerasTensor((*texts.shape, 8), "int64")


def _fit(callbacks, tokenize, **options):
  texts = keras.Input((), dtype="string")
  mean = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(50, 4)(Tokens(tokenize)(texts)))
  model = keras.Model(texts, keras.layers.Dense(1, "sigmoid")(mean))
  model.compile("adam", "binary_crossentropy", metrics=["accuracy"], **options)
  data = tf.data.Dataset.from_tensor_slices((_TEXTS, _LABELS)).shuffle(30, seed=1).batch(8)
  history = model.fit(data, validation_data=data.take(2).cache(), epochs=3, verbose=0, callbacks=callbacks)
  return result(model, history)


@program(staged="FastWordpieceTokenize")
def word_pieces(callbacks):
  tokenizer = tensorflow_text.FastBertTokenizer(["[UNK]", *_WORDS], lower_case_nfd_strip_accents=True)
  return _fit(callbacks, tokenizer.tokenize)


@program(staged="WordpieceTokenizeWithOffsets")
def table_of_word_pieces(callbacks):
  keys = tf.lookup.KeyValueTensorInitializer(["[UNK]", *_WORDS], tf.range(7, dtype=tf.int64))
  table = tf.lookup.StaticVocabularyTable(keys, 1, lookup_key_dtype=tf.string)
  tokenizer = tensorflow_text.BertTokenizer(table, lower_case=True)
  return _fit(callbacks, lambda texts: tokenizer.tokenize(texts).merge_dims(-2, -1))


@program(staged="StringToHashBucketFast")
def hashed_n_grams(callbacks):
  tokenizer = tensorflow_text.WhitespaceTokenizer()

  def tokenize(texts):
    words = tokenizer.tokenize(tensorflow_text.normalize_utf8(texts))
    pairs = tensorflow_text.ngrams(words, 2, reduction_type=tensorflow_text.Reduction.STRING_JOIN)
    return tf.strings.to_hash_bucket_fast(tf.concat([words, pairs], 1), 50)

  return _fit(callbacks, tokenize)


main("tensorflow-text", "keras")
