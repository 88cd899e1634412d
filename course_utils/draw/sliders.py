"""A picture that is drawn anew when a slider is moved."""

from collections.abc import Callable
from typing import Any

from ipywidgets import HTML, VBox, Widget

from course_utils.draw.style import Picture


class SlidersAndPicture(VBox):
    """Sliders above a picture. Where no kernel runs, as on a printed page, the first picture stands alone.

    `interact` of ipywidgets shows what it draws through an Output widget, whose messages can make
    `jupyter nbconvert --execute` wait for ever.
    """

    def __init__(self, draw: Callable[..., Picture], sliders: dict[str, Widget]) -> None:
        def drawn() -> dict:
            return draw(**{name: slider.value for name, slider in sliders.items()})._repr_mimebundle_()[0]

        def show(_: Any) -> None:
            shown.value = drawn()["text/html"]

        self._first = drawn()
        shown = HTML(self._first["text/html"])

        for slider in sliders.values():
            slider.observe(show, "value")
        super().__init__([*sliders.values(), shown])

    def _repr_mimebundle_(self, **options: Any) -> dict:
        """IPython's hook: the widget, and the first picture for who cannot show widgets."""
        return self._first | super()._repr_mimebundle_(**options) | {"text/plain": self._first["text/plain"]}


def with_sliders(draw: Callable[..., Picture], **sliders: Widget) -> SlidersAndPicture:
    """A picture with sliders that change it.

    Args:
        draw: gives the picture for the sliders' values, which it takes by their names.
        sliders: widgets with a `value`; one without a description gets its name.
    """
    for name, slider in sliders.items():
        slider.description = slider.description or name.replace("_", " ")
    return SlidersAndPicture(draw, sliders)
