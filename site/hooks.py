"""Hooks of MkDocs: pages that are generated, and links to files of the repository.

The home page is the README. Reference pages are made of what commands, parameters, statistics,
designs, workloads and machines declare (`reference`). A link from a page to a file outside docs/
leads to a page that shows that file, since the site is read without the repository.
"""

from __future__ import annotations

import logging
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files, InclusionLevel

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(Path(__file__).parent))

import reference  # noqa: E402 - beside this file

log = logging.getLogger("mkdocs.hooks")

LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?(?P<after>\))")

SOURCES = "source"
"""The folder of pages that show files of the repository."""

LANGUAGES = {".rs": "rust", ".py": "python", ".toml": "toml", ".h": "c", ".csv": "text"}

SHOWN_LINES = 400
"""Lines that are shown of a file of data."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the home page, the reference, and what pages link to."""
    for path, text in {"index.md": home(), **reference.pages()}.items():
        files.append(File.generated(config, path, content=text))
    site = ROOT / "site"
    for asset in sorted([*site.glob("vendor/*.js"), *site.glob("looks/*")]):
        content = asset.read_text(encoding="utf-8")
        files.append(File.generated(config, f"assets/{asset.name}", content=content))
    for target in sorted(linked(files)):
        page = File.generated(config, page_of(target), content=shown(target))
        page.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads links to files of the repository to the pages that show them."""
    del config, files
    return LINK.sub(lambda link: moved(link, page.file.src_uri), markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Adds the documentation of the crates, which `cargo doc` has made."""
    made = ROOT / "target" / "doc"
    if not (made / "graven" / "index.html").exists():
        log.warning("%s is not there: `make site` has cargo make it", made)
        return
    shutil.copytree(made, Path(config.site_dir) / reference.RUST, dirs_exist_ok=True)


def home() -> str:
    """The README, with links as of a page in docs/."""

    def in_docs(link: re.Match[str]) -> str:
        target = link["target"]
        if re.match(r"\w+:", target):
            return link[0]
        there = target.removeprefix("docs/") if target.startswith("docs/") else f"../{target}"
        return f"{link['before']}{there}{link['anchor'] or ''}{link['after']}"

    return LINK.sub(in_docs, (ROOT / "README.md").read_text(encoding="utf-8"))


def linked(files: Files) -> set[str]:
    """Files and folders outside docs/ that pages link to, from the root."""
    found = set()
    for file in files.documentation_pages():
        for link in LINK.finditer(file.content_string):
            target = outside(link["target"], file.src_uri)
            if target is not None and (ROOT / target).exists():
                found.add(target)
    return found


def outside(target: str, page: str) -> str | None:
    """The path from the root of what a link leads to, if it is outside docs/."""
    if re.match(r"\w+:", target):
        return None
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    return None if path.startswith("docs/") else path


def page_of(target: str) -> str:
    """The page that shows a file or a folder of the repository."""
    return f"{SOURCES}/{target.rstrip('/')}.md"


def moved(link: re.Match[str], page: str) -> str:
    """A link to where the site has its target."""
    target = outside(link["target"], page)
    if target is None or not (ROOT / target).exists():
        return link[0]  # if it leads nowhere, the check of links says so
    here = posixpath.dirname(page) or "."
    return f"{link['before']}{posixpath.relpath(page_of(target), here)}{link['after']}"


def shown(target: str) -> str:
    """A page with a file, or with the names in a folder."""
    path = ROOT / target
    title = f"# {target}\n\n"
    if path.is_dir():
        tracked = subprocess.run(
            ["git", "ls-files", "--", f"{target}/"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        return f"{title}Files in this folder of the repository:\n\n```text\n{tracked}```\n"
    lines = path.read_text(encoding="utf-8").splitlines()
    note = ""
    if path.suffix == ".csv" and len(lines) > SHOWN_LINES:
        note = f"The first {SHOWN_LINES:,} of {len(lines):,} lines.\n\n"
        lines = lines[:SHOWN_LINES]
    body = "\n".join(lines)
    fence = "`" * (max((len(run) for run in re.findall(r"`+", body)), default=0) + 1)
    fence = max(fence, "```", key=len)
    return f"{title}{note}{fence}{LANGUAGES.get(path.suffix, 'text')}\n{body}\n{fence}\n"
