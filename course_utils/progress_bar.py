"""A bar for what takes longer than two seconds; nothing is shown before, and nothing at all under TQDM_DISABLE=1.

Nor is anything shown on a machine with GPUs that has torch alone, and not the package that draws the bar.

In a notebook the bar is text, not a widget: a widget is gone when the saved notebook is opened again, and an error
message stands in its place. tqdm's own `delay` would hold a bar back as well, but tqdm starts a thread with its first
bar, shown or not; here a notebook whose calls are short has neither.
"""

import os
import sys
import time
from types import TracebackType

try:
    from tqdm.std import tqdm
except ImportError:
    tqdm = None

DELAY = 2.0


class _BelowTheCell:
    """A file for `tqdm` to write its line to, which a notebook shows below the running cell."""

    encoding = "utf-8"

    def __init__(self) -> None:
        from IPython.display import display

        self._line = ""
        self._shown = display(self._output(), raw=True, display_id=True)

    def write(self, text: str) -> None:
        """Take what stands behind the last return as the line."""
        self._line = text.rpartition("\r")[2].strip() or self._line

    def flush(self) -> None:
        """Show the line."""
        self._shown.update(self._output(), raw=True)

    def clear(self) -> None:
        """Show nothing any more."""
        self._line = ""
        self.flush()

    def _output(self) -> dict[str, str]:
        return {
            "text/plain": self._line,
            "text/html": f'<pre style="margin: 0; padding: 0">{self._line}</pre>' if self._line else "",
        }


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return hasattr(ipython.get_ipython(), "kernel") if ipython else False


class ProgressBar:
    """Seconds that pass, from the third on. Call `refresh` now and then: between two measurements, never within one."""

    def __init__(self, text: str, delay: float = DELAY) -> None:
        self._text, self._delay = text, delay
        self._bar: tqdm | None = None

    def __enter__(self) -> "ProgressBar":
        self._began = time.monotonic()
        return self

    def say(self, text: str) -> None:
        """Another text, from now on."""
        self._text = text
        if self._bar is not None:
            self._bar.set_description_str(text, refresh=False)

    def refresh(self) -> None:
        """Show how long it has taken so far."""
        seconds = time.monotonic() - self._began
        hidden = tqdm is None or os.environ.get("TQDM_DISABLE") == "1"  # tqdm's bars for notebooks do not look at it
        if seconds < self._delay or hidden:
            return
        if self._bar is None:
            form = "{desc}: {elapsed}"
            self._file = _BelowTheCell() if in_notebook() else sys.stderr
            self._bar = tqdm(desc=self._text, bar_format=form, leave=False, file=self._file, mininterval=0.5)
            self._bar.start_t -= seconds
        if seconds - getattr(self, "_drawn", 0.0) > 0.5:
            self._drawn = seconds
            self._bar.refresh()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
            if isinstance(self._file, _BelowTheCell):
                self._file.clear()
