"""HTML from Jinja's templates: small files beside the modules that fill them.

Their styles are written into the elements. JupyterLab drops a `<style>` from the outputs of a notebook that it does not
trust, such as a learner's notebook on a teacher's machine, and keeps an element's own style.
"""

import functools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_FOLDER = Path(__file__).resolve().parents[1]
_CODE = re.compile(r"`([^`\n]+)`")
_BREAK = re.compile(r"(?P<tag><[^>]*>)|(?<=[_.(=])|(?<=[a-z])(?=[A-Z])")
"""Where a long name may go on in the next line; tags are left alone."""


def render(template: str, **values: Any) -> str:
    """Fill a template; what is not marked as HTML is escaped.

    Args:
        template: its file, from the folder that holds `course_utils`.
        values: the template's variables; those that are left out count as false.
    """
    return _environment().get_template(template).render(values)


@functools.cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader  # here, for it takes longer than the import of the course

    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True, auto_reload=False
    )
    environment.filters |= {"prose": prose, "breakable": breakable, "address": address, "zip": zip}
    return environment


def prose(text: object) -> "Markup":
    """Mark what is between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(_CODE.sub(r'<code style="white-space: pre-wrap">\1</code>', str(escape(text))))


def breakable(text: str) -> "Markup":
    """Allow a long name to go on in the next line, between its parts."""
    from markupsafe import Markup, escape

    return Markup(_BREAK.sub(lambda found: found["tag"] or "<wbr>", str(escape(text))))


def address(file: str) -> str:
    """The address of a file of the course, as seen from the notebook; "" where the file is not beside it."""
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / file).is_file()), None)
    return quote(os.path.relpath(root / file, here)) if root else ""
