# SPDX-License-Identifier: Apache-2.0
"""Stage thread pools, as far as Python has a part in them."""
