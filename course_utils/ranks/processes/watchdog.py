"""The watch: a small process that ends a set of ranks when no notebook that owns them is left.

A kernel can be killed in ways that leave it no time to tidy up. The watch stands outside: it looks at the owners twice
a second and does the tidying when the last is gone.
Started as `python -m course_utils.ranks.processes.watchdog FOLDER`.
"""

import signal
import sys
import time
from pathlib import Path

from course_utils.ranks.processes.ranks_folder import RanksFolder

POLL_SECONDS = 0.5


def watch(folder: RanksFolder) -> None:
    """End the set when its owners are gone, or its folder: somebody may have tidied up a folder for temporary files."""
    while folder.living_owners() or not folder.end_unless_owned():
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    watch(RanksFolder(Path(sys.argv[1])))
