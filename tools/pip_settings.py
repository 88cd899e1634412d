"""What `pip config list` answers, read for a shell: `python -m pip config list | python tools/pip_settings.py`.

Where packages come from, and how they are reached, is the site's business, and is kept. All else would send them to a
different place than .venv, or take other versions than constraints.txt has, and is set aside.
"""

import ast
import shlex
import sys
from collections.abc import Iterable

KEPT = {
    "index-url", "extra-index-url", "no-index", "find-links", "trusted-host", "cert", "client-cert", "proxy", "timeout",
    "default-timeout", "retries", "cache-dir", "no-cache-dir", "keyring-provider", "use-feature",
}  # fmt: skip
HARMLESS = {
    "disable-pip-version-check", "no-input", "no-color", "root-user-action", "break-system-packages", "progress-bar",
    "require-virtualenv", "no-warn-script-location", "log", "format", "prefer-binary",
}  # fmt: skip
SECTIONS = ("global", "install", ":env:")
"""Those that count for `pip install`; a later one wins."""
OFF = {"", "0", "false", "no", "off"}


def settings(lines: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """The settings that are kept, as pip's environment variables, and the names of those that are set aside."""
    found = []
    for line in lines:
        key, _, value = line.strip().partition("=")
        section, _, name = key.rpartition(".")
        if section in SECTIONS and value:
            found.append((SECTIONS.index(section), name, " ".join(str(ast.literal_eval(value)).split())))
    kept, aside = {}, set()
    for section, name, value in sorted(found):
        if name in KEPT:
            kept[name] = value
        elif SECTIONS[section] != ":env:" and name not in HARMLESS and value.lower() not in OFF:
            aside.add(name)
    return {"PIP_" + name.upper().replace("-", "_"): value for name, value in kept.items()}, sorted(aside)


def main() -> None:
    """Write what the shell evaluates."""
    kept, aside = settings(sys.stdin)
    for name, value in kept.items():
        print(f"export {name}={shlex.quote(value)}")
    print(f"of_pip_conf={shlex.quote(' '.join(aside))}")


if __name__ == "__main__":
    main()
