"""How Sphinx turns one deck into slides that need no network; copied beside each deck when it is built."""

project = "Distributed deep learning"
extensions = ["myst_parser", "sphinx.ext.mathjax", "sphinx_revealjs"]
root_doc = "index"
html_show_sourcelink = False
html_copy_source = False

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist", "attrs_inline"]
suppress_warnings = ["myst.header"]

mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}, "svg": {"fontCache": "local"}}

revealjs_html_theme = "revealjs-simple"
revealjs_static_path = ["_static"]
revealjs_style_theme = "white"
revealjs_css_files = ["course.css"]
revealjs_script_files = ["revealjs/dist/reveal.js"]
revealjs_script_plugins = [
    {"name": "RevealNotes", "src": "revealjs/plugin/notes/notes.js"},
    {"name": "RevealHighlight", "src": "revealjs/plugin/highlight/highlight.js"},
]
revealjs_script_conf = {
    "width": 1280,
    "height": 720,
    "margin": 0.05,
    "navigationMode": "linear",
    "hash": True,
    "slideNumber": "c/t",
    "transition": "none",
    "pdfSeparateFragments": False,
}
