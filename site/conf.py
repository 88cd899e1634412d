"""How Sphinx turns the executed lessons into a website that needs no network; copied beside the pages it builds."""

import json
from pathlib import Path

project = "Distributed deep learning, on your own processes"
author = "the course's maintainers"
extensions = ["myst_nb"]
root_doc = "index"
language = "en"
html_show_sourcelink = False
html_copy_source = False

nb_execution_mode = "off"  # the build has run them
nb_output_stderr = "show"
nb_merge_streams = True
nb_ipywidgets_js = {}  # they come from the network
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type"]

mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}, "svg": {"fontCache": "local"}}

html_theme = "sphinx_book_theme"
html_title = "Distributed deep learning"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_extra_path = ["_extra"]
html_favicon = "_static/favicon.svg"
html_css_files = ["course.css"]
html_js_files = ["course.js"]
html_theme_options = {
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "home_page_in_toc": True,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "navbar_persistent": [],  # no second search above the one in the menu
    "search_bar_text": "Search the course",
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

ORDER = json.loads(Path(__file__).with_name("order.json").read_text(encoding="utf-8"))
"""For each notebook the one before and the one after it: those of the bar that it shows, not those of the menu."""


def buttons(app, pagename, templatename, context, doctree):
    """Let the buttons at the end of a notebook lead where its own bar leads."""
    for name, other in {"prev": None, "next": None, **ORDER[pagename]}.items() if pagename in ORDER else ():
        title = app.env.titles[other].astext() if other else ""
        context[name] = {"title": title, "link": app.builder.get_relative_uri(pagename, other)} if other else None


def setup(app):
    """Tell Sphinx of the buttons."""
    app.connect("html-page-context", buttons)
