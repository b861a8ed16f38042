# SPDX-License-Identifier: Apache-2.0
"""`python -m tensorflow.staging doctor`: checks of an installation, each a function that returns what it found."""
