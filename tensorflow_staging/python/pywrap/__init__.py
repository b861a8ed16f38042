# SPDX-License-Identifier: Apache-2.0
"""The extension module `_pywrap_staging`, through which all Python code of staging calls C++."""
