"""Hooks of MkDocs: the documents are written for GitHub, and the site needs little else.

- Links to files outside docs/ become links to the repository, if the file exists.
- A line of nav such as guides/* stands for the other pages of a folder.
- The page reference/api.md is generated from the docstrings of noether_ml.
- The report of the demo, if NOETHER_REPORT is its path, becomes a page.
- Examples in Python must compile.
"""

import os
import posixpath
import re
import textwrap
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
API = """# Python API

Generated from the docstrings. [Python](python.md) explains the arguments.

::: noether_ml
    options:
      show_root_heading: false
      show_root_toc_entry: false
      members: [measure, load, demo, compare, inspect, grad, invert, train, Inversion, Error]

::: noether_ml.Run
"""
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)
REPORT = "reports/demo.html"


def on_files(files, config):
    files.append(File.generated(config, "reference/api.md", content=API))
    if report := os.environ.get("NOETHER_REPORT"):
        files.append(File.generated(config, REPORT, abs_src_path=report))
        config.nav[0]["Start"].append({"Example report": REPORT})
    pages = sorted(f.src_uri for f in files if f.is_documentation_page())
    listed = {leaf for leaf in _leaves(config.nav) if not leaf.endswith("/*")}
    config.nav = _expanded(config.nav, [p for p in pages if p not in listed])
    return files


def _leaves(entry):
    if isinstance(entry, str):
        yield entry
    else:
        for one in entry.values() if isinstance(entry, dict) else entry:
            yield from _leaves(one)


def _expanded(entry, rest):
    if isinstance(entry, dict):
        return {key: _expanded(value, rest) for key, value in entry.items()}
    if not isinstance(entry, list):
        return entry
    out = []
    for one in entry:
        if isinstance(one, str) and one.endswith("/*"):
            out += [page for page in rest if page.startswith(one[:-1])]
        else:
            out.append(_expanded(one, rest))
    return out


def on_page_markdown(markdown, page, config, files):
    for language, code in FENCE.findall(markdown):
        if language == "python":
            try:
                compile(textwrap.dedent(code), page.file.src_uri, "exec")
            except SyntaxError as e:
                raise PluginError(f"{page.file.src_uri}: an example in Python: {e}") from None

    def outside(match):
        target, _, anchor = match[2].partition("#")
        if "://" in target or not target or target.startswith("mailto:"):
            return match[0]
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), target))
        if path.startswith("docs/") and path.endswith((".md", ".png", ".svg", ".json", ".html")):
            return match[0]
        found = ROOT / path
        if not found.exists():
            raise PluginError(f"{page.file.src_uri}: the link {match[2]} has no target")
        kind = "tree" if found.is_dir() else "blob"
        return f"{match[1]}{config.repo_url}/{kind}/main/{path}{'#' + anchor if anchor else ''}{match[3]}"

    return LINK.sub(outside, markdown)
