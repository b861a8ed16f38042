# SPDX-License-Identifier: Apache-2.0
"""KerasHub: classifiers with small backbones of random weights, and their tokenizers in the model's data or in it."""

import keras
import keras_hub
import numpy as np
import tensorflow as tf
from comparison import main
from comparison import program
from comparison import result

_WORDS = ["the", "good", "bad", "film", "plot", "actor", "is", "was"]
_RANDOM = np.random.RandomState(0)
_TEXTS = [" ".join(_RANDOM.choice(_WORDS, n % 7 + 1)) for n in range(64)]
_LABELS = np.array(["good" in text for text in _TEXTS]).astype("int32")


def _bert():
  vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS]
  tokenizer = keras_hub.models.BertTokenizer(vocabulary)
  preprocessor = keras_hub.models.BertTextClassifierPreprocessor(tokenizer, sequence_length=8)
  backbone = keras_hub.models.BertBackbone(
      vocabulary_size=len(vocabulary), num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=16,
      max_sequence_length=8)
  return backbone, preprocessor


def _data():
  return tf.data.Dataset.from_tensor_slices((_TEXTS, _LABELS)).shuffle(30, seed=1).batch(8)


@program(staged="ExpandDims")
def classifier_with_its_preprocessor(callbacks):
  backbone, preprocessor = _bert()
  model = keras_hub.models.BertTextClassifier(backbone, num_classes=2, preprocessor=preprocessor, dropout=0.1)
  model.compile(optimizer="adam")
  history = model.fit(_data(), validation_data=_data().take(2), epochs=2, verbose=0, callbacks=callbacks)
  return result(model, history, model.predict(_TEXTS[:9], verbose=0))


class Tokenizes(keras.layers.Layer):
  """Has a preprocessor of KerasHub in the model."""

  def __init__(self, preprocessor):
    super().__init__(dtype="int32")
    self.preprocessor = preprocessor
    self.supports_jit = False

  def call(self, texts):
    return self.preprocessor(texts)

  def compute_output_spec(self, texts):
    spec = lambda dtype: keras.KerasTensor((None, 8), dtype)
    return {"token_ids": spec("int32"), "padding_mask": spec("bool"), "segment_ids": spec("int32")}


def _whole(**options):
  backbone, preprocessor = _bert()
  texts = keras.Input((), dtype="string")
  return _classifier(texts, backbone(Tokenizes(preprocessor)(texts)), **options)


def _classifier(inputs, outputs, **options):
  model = keras.Model(inputs, keras.layers.Dense(2)(keras.layers.Dropout(0.1)(outputs["pooled_output"])))
  model.compile(
      "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], **options)
  return model


@program(staged="FastWordpieceTokenize")
def preprocessor_in_the_model(callbacks):
  model = _whole()
  history = model.fit(_data(), validation_data=_data().take(2), epochs=2, verbose=0, callbacks=callbacks)
  data = _data().map(lambda texts, _: texts).cache()
  return result(model, history, model.predict(data, verbose=0, callbacks=callbacks))


@program(staged="FastWordpieceTokenize")
def preprocessor_in_the_model_several_steps(callbacks):
  model = _whole(steps_per_execution=3)
  return result(model, model.fit(_data(), epochs=2, verbose=0, callbacks=callbacks))


@program(staged="FastWordpieceTokenize")
def preprocessor_in_a_model_that_xla_compiles(callbacks):
  if callbacks:
    model, data = _whole(jit_compile=True), _data()
  else:
    # XLA compiles no strings, so without the callback they are in the data.
    backbone, preprocessor = _bert()
    model = _classifier(backbone.input, backbone.output, jit_compile=True)
    data = _data().map(lambda texts, labels: (preprocessor(texts), labels))
  assert not callbacks or not model.jit_compile
  return result(model, model.fit(data, epochs=2, verbose=0, callbacks=callbacks))


def _tokens(callbacks, tokenizer, size):
  texts = keras.Input((), dtype="string")
  ids = tokenizer(texts)
  position = keras_hub.layers.TokenAndPositionEmbedding(size, 8, 8, mask_zero=True)(ids)
  encoded = keras_hub.layers.TransformerEncoder(16, 2, dropout=0.1)(position)
  model = keras.Model(texts, keras.layers.Dense(1, "sigmoid")(keras.layers.GlobalAveragePooling1D()(encoded)))
  model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
  history = model.fit(_data(), epochs=2, verbose=0, callbacks=callbacks)
  return result(model, history, model.evaluate(_data().cache(), verbose=0, callbacks=callbacks))


@program(staged="FastWordpieceTokenize")
def word_pieces(callbacks):
  return _tokens(callbacks, keras_hub.tokenizers.WordPieceTokenizer(["[UNK]", *_WORDS], sequence_length=8), 9)


@program(staged="UnicodeDecode")
def code_points(callbacks):
  return _tokens(callbacks, keras_hub.tokenizers.UnicodeCodepointTokenizer(sequence_length=8, vocabulary_size=300), 300)


@program(staged="StringsByteSplit")
def bytes_of_texts(callbacks):
  return _tokens(callbacks, keras_hub.tokenizers.ByteTokenizer(sequence_length=8), 256)


main("keras-hub")
