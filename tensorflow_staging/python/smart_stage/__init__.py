# SPDX-License-Identifier: Apache-2.0
"""SmartStage, which finds by itself what runs ahead: its options and marks."""
