"""Pages of A4 from HTML, by the system's Chromium, with formulas drawn by MathJax and the network closed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from workshop.publish.sources import AuthoringError

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from playwright.sync_api import Page

CHROMIUM_OPTIONS = ["--no-sandbox", "--disable-dev-shm-usage"]  # as root, and in a container with a small /dev/shm
SECONDS = 120
HEAD = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
@page {{ size: A4; margin: 0 }}
* {{ box-sizing: border-box }}
body {{ margin: 0; font-family: "Source Sans Pro", "DejaVu Sans", Helvetica, sans-serif; line-height: 1.35 }}
code {{ font-family: "DejaVu Sans Mono", monospace; font-size: .88em }}
p {{ margin: .45em 0 }}
mjx-container [stroke-width="0"] {{ stroke: none }} /* else a PDF draws a line around every letter */
{style}
</style>
<script>MathJax = {{svg: {{fontCache: "local"}}, options: {{enableMenu: false}}}}</script>
<script src="{mathjax}"></script></head><body>
"""


@cache
def _markdown() -> "MarkdownIt":
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    renderer = MarkdownIt("commonmark", {"html": False}).enable("table").use(dollarmath_plugin)
    renderer.add_render_rule("math_inline", lambda self, tokens, at, *_: f"\\({_escaped(tokens[at].content)}\\)")
    renderer.add_render_rule("math_block", lambda self, tokens, at, *_: f"<p>\\[{_escaped(tokens[at].content)}\\]</p>")
    return renderer


def html_of(markdown: str) -> str:
    """Markdown with formulas as HTML."""
    return _markdown().render(markdown)


def line_of(markdown: str) -> str:
    """A line of Markdown as HTML, without a paragraph around it."""
    return _markdown().renderInline(markdown)


def _escaped(formula: str) -> str:
    return formula.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def page_of(title: str, style: str, body: str, mathjax: Path) -> str:
    """A whole HTML page."""
    return HEAD.format(title=title, style=style, mathjax=mathjax.resolve().as_uri()) + body + "</body></html>"


@contextmanager
def offline_tab(what: str) -> "Iterator[Page]":
    """An empty tab of Chromium without a network.

    Args:
        what: is printed in it, for the error.

    Raises:
        AuthoringError: Chromium failed.
    """
    from playwright.sync_api import Error, sync_playwright

    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM_OPTIONS)
            try:
                tab = browser.new_context(offline=True).new_page()
                tab.set_default_timeout(SECONDS * 1000)
                yield tab
            finally:
                browser.close()
    except Error as error:
        raise AuthoringError(f"Chromium could not print {what}: {str(error).splitlines()[0]}") from error


@contextmanager
def opened(page: str, folder: Path) -> "Iterator[Page]":
    """A page in Chromium, with its formulas drawn.

    Raises:
        AuthoringError: Chromium failed.
    """
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    with offline_tab("a page") as tab:
        tab.emulate_media(media="print")
        tab.goto(file.resolve().as_uri(), wait_until="load")
        tab.evaluate("MathJax.startup.promise.then(() => true)")
        yield tab
