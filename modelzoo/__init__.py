# SPDX-License-Identifier: Apache-2.0
"""Six models for click-through rates, and what they share."""
