"""Hints: first a question, then nearly the answer. Each is given only when it is asked for."""

from course_utils.checks import panel as parts
from course_utils.checks.panel import NEUTRAL, Panel
from course_utils.checks.progress_records import SESSION
from course_utils.checks.registry import find

_given: dict[str, int] = {}


def hint(name: str) -> None:
    """Show a hint for the exercise of this name: first a question, the second time nearly the answer."""
    hints = find(name).hints
    step = min(_given.get(name, 0), len(hints) - 1)
    _given[name] = step + 1
    SESSION.write(hint=name, step=step + 1)
    parts.show(panel(name, hints, step))


def panel(name: str, hints: tuple[str, ...], step: int) -> Panel:
    """The hint at `step` (from 0), which one of how many it is, and how to get the next."""
    count = f"hint {step + 1} of {len(hints)}"
    more = f'Still stuck? `course.hint("{name}")` again gives the next one.' if step + 1 < len(hints) else ""
    html = parts.panel_html(f"{name}: {count}", NEUTRAL, name, words=count, question=hints[step], more=more)
    text = f"{count.capitalize()}: {hints[step]}" + (f"\n({more.replace('`', '')})" if more else "")
    return Panel(text, html)
