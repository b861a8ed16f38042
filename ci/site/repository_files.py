# SPDX-License-Identifier: Apache-2.0
"""A hook of MkDocs that gives each page its path in the repository, so that relative links hold there and in the site.

The pages and pictures of docs/ are the top of the site. A file of another folder is in the site if a page links to it:
Markdown as a page, a picture as it is, and anything else, such as source code, as text.
"""

import pathlib
import posixpath
import re
import urllib.parse

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure import files as mkdocs_files

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_DOCS = "docs/"
_PICTURES = (".svg", ".png")

_LINK = re.compile(r"\]\(([^()\s#]+)(?:#[^()\s]*)?\)")


def on_files(files: mkdocs_files.Files, config: MkDocsConfig) -> mkdocs_files.Files:
  """Replaces the files of docs/ by files with the repository's paths, and adds those to which pages link."""
  in_docs = [file for file in files if file.src_dir and pathlib.Path(file.src_dir) == pathlib.Path(config.docs_dir)]
  others = [file for file in files if file not in in_docs]
  paths = [_DOCS + file.src_uri for file in in_docs if file.src_uri.endswith((".md", *_PICTURES))]
  found = list(dict.fromkeys(path for path in paths + _named_by(config.nav) if (_ROOT / path).is_file()))
  for path in found:  # Grows while it is read: what a linked page links to is in the site as well.
    found.extend(linked for linked in _linked_files(path) if linked not in found)
  _add_pages_without_a_place(config, paths)
  return mkdocs_files.Files([*others, *(_file(path, config) for path in found)])


def _file(path: str, config: MkDocsConfig) -> mkdocs_files.File:
  place = path.removeprefix(_DOCS)
  if path.endswith(".md"):
    folder, name = posixpath.split(place.removesuffix(".md"))
    # The README of a folder is its first page; the repository's is not that of the site.
    place = posixpath.join(folder, "index" if folder and name == "README" else name) + ".html"
  elif not path.endswith(_PICTURES):
    place += ".txt"
  return mkdocs_files.File(path, str(_ROOT), config.site_dir, config.use_directory_urls, dest_uri=place)


def _linked_files(path: str) -> list[str]:
  """The files of the repository to which a Markdown file links."""
  if not path.endswith(".md"):
    return []
  links = _LINK.findall((_ROOT / path).read_text(encoding="utf-8"))
  targets = [posixpath.normpath(posixpath.join(posixpath.dirname(path), urllib.parse.unquote(link))) for link in links]
  return [target for target in dict.fromkeys(targets) if (_ROOT / target).is_file()]


def _named_by(nav: list | dict | str) -> list[str]:
  """The paths in a navigation."""
  if isinstance(nav, str):
    return [nav]
  entries = nav.values() if isinstance(nav, dict) else nav
  return [path for entry in entries for path in _named_by(entry)]


def _add_pages_without_a_place(config: MkDocsConfig, paths: list[str]) -> None:
  named = set(_named_by(config.nav))
  others = sorted(path for path in paths if path.endswith(".md") and path not in named)
  if others:
    config.nav.append({"More": others})
