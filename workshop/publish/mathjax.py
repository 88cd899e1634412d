"""MathJax for the decks: one script from its npm package, fetched once and kept beside the built slides."""

import os
import re
from pathlib import Path

from workshop.publish.npm import package_file

VERSION = "3.2.2"
SCRIPT = "package/es5/tex-svg.js"  # draws formulas as SVG: no font files beside it
SHA256 = "d4295dc33744836935c1399feece5159577b34c5c8ffb9f1c6324cd82e03a882"
NETWORK = re.compile(r"https://cdn\.[\w.]+/npm/")  # where its speech add-ons, unused here, would come from


def mathjax_script(cache: Path) -> Path:
    """The script's path in `cache`; fetched through npm where it is not there yet.

    Raises:
        AuthoringError: where npm cannot bring the package, or brings another file than expected.
    """
    script = cache / f"mathjax-{VERSION}" / "tex-svg.js"
    if not script.is_file():
        text = NETWORK.sub("", package_file("mathjax", VERSION, SCRIPT, SHA256).decode("utf-8"))
        script.parent.mkdir(parents=True, exist_ok=True)
        beside = script.with_name(f"{os.getpid()}.new")
        beside.write_text(text, encoding="utf-8")
        beside.replace(script)
    return script
