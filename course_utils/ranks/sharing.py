"""Ranks that several notebooks use: one starts and offers them, others of the same installation take them over.

The offer is written into the folder of the ranks before they start, so a notebook that begins a moment later waits for
these ranks, and does not start as many again.
"""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_utils.ranks.processes.installation import installation, ranks_settings, version
from course_utils.ranks.processes.ranks_folder import RanksFolder, full_disk_in_words
from course_utils.words import count

if TYPE_CHECKING:
    from course_utils.ranks.launch_sites import LaunchSite

CHANGED_FILES = (
    "The files of the course were changed after this notebook had begun, and the ranks run the new version. Restart "
    "the kernel, so that the notebook runs it too."
)


def offer(folder: RanksFolder, ranks: int, site: "LaunchSite") -> None:
    """Own a folder, and let other notebooks find the ranks that are about to start in it."""
    with full_disk_in_words(folder.path.parent):
        folder.own()
        folder.write_facts(**_needed_facts(ranks, site))


def announce(folder: RanksFolder, facts: dict[str, Any]) -> None:
    """Let notebooks connect to the ranks of a folder.

    Args:
        facts: what the ranks have said of themselves. They may run a newer version than this notebook.
    """
    own = {**installation(), "version": facts["ranks"][0]["version"]}
    folder.write_facts(line=facts["line"], installation=own, shared_memory=sorted(folder.shared_memory()))


def have_started(folder: RanksFolder) -> bool:
    """Whether a notebook can connect to the ranks of a folder."""
    return "line" in folder.facts()


def offered_folder(ranks: int, site: "LaunchSite", rejected: Collection[Path] = ()) -> RanksFolder | None:
    """The newest folder of ranks that this notebook can take over, or could when they have started."""
    folders = (folder for folder in RanksFolder.all() if folder.path not in rejected)
    return next((folder for folder in folders if is_suitable(folder, ranks, site)), None)


def is_suitable(folder: RanksFolder, ranks: int, site: "LaunchSite") -> bool:
    """Whether these ranks are what this notebook would start itself, and live."""
    facts = folder.facts()
    if any(facts.get(name) != value for name, value in _needed_facts(ranks, site).items()):
        return False
    somebody_starts_them = have_started(folder) or bool(folder.other_owners())
    return somebody_starts_them and folder.is_kept() and not folder.a_rank_has_ended()


def _needed_facts(ranks: int, site: "LaunchSite") -> dict[str, Any]:
    """The facts that must be equal. (Older versions of the course compare others, and do not find them here.)"""
    return {
        "offered": {"ranks": ranks, "site": site.facts, "settings": ranks_settings()},
        "installation": installation(),
    }


def sharing_text(others: int) -> str:
    """What it means that so many other notebooks use the same ranks."""
    if others == 1:
        return "Another open notebook uses the same ranks, so each of the two sees what the other defines on them."
    return f"{count(others, 'other open notebook')} use the same ranks, so each sees what the others define on them."


def changed_files_text(facts: dict[str, Any]) -> str | None:
    """What to do where ranks run a newer version of the course than this notebook."""
    return None if facts["ranks"][0]["version"] == version() else CHANGED_FILES


def other_installations_text(own: RanksFolder) -> str | None:
    """Which ranks of other installations are running, if any, so that nobody wonders who uses the cores."""
    parts = []
    for folder in RanksFolder.all():
        facts = folder.facts()
        owner = _difference(facts.get("installation", {}))
        if owner and folder.path != own.path and "offered" in facts and folder.is_kept():
            parts.append(f"{count(facts['offered']['ranks'], 'rank')} of {owner}")
    return f"Other ranks of yours are running too: {', '.join(dict.fromkeys(parts))}." if parts else None


def _difference(other: dict[str, str]) -> str | None:
    """What tells an installation from this one, in words; None where it is the same."""
    own = installation()
    if other.get("checkout", own["checkout"]) != own["checkout"]:
        return f"the course in {other['checkout']}"
    if other.get("python", own["python"]) != own["python"]:
        return f"the environment of {other['python']}"
    if other.get("version", own["version"]) != own["version"]:
        return "a different version of these files"
    return None
