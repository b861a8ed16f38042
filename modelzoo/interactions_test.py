# SPDX-License-Identifier: Apache-2.0
"""The interactions of DLRM and DeepFM are dot products of all pairs."""

import itertools

import numpy as np
import tensorflow as tf

from modelzoo.deepfm import train as deepfm
from modelzoo.dlrm import train as dlrm


def test_dlrm_has_each_dot_product_and_deepfm_their_sum():
  vectors = np.random.default_rng(1).normal(size=(2, 5, 3)).astype(np.float32)
  wanted = [[x[i] @ x[j] for i, j in itertools.combinations(range(5), 2)] for x in vectors]
  with tf.Graph().as_default(), tf.Session() as session:
    products, total = session.run([dlrm.dot_products(tf.constant(vectors)), deepfm.pairs(tf.constant(vectors))])
  np.testing.assert_allclose(np.sort(products), np.sort(wanted), rtol=1e-5)
  np.testing.assert_allclose(total, np.sum(wanted, axis=1), rtol=1e-4)
