"""Writes the settings of the JupyterLab behind the portal's proxy: `python server_settings.py FILE < password`.

As JSON, so that nothing has to be quoted. The password reaches the disk as an argon2 hash only.
"""

import json
import os
import shutil
import sys
from pathlib import Path

from jupyter_server.auth import passwd

from course_utils.settings import COPY, PORTAL
from course_utils.syllabus import ROOT


def settings(password: str, environment: dict[str, str]) -> dict[str, dict]:
    """What JupyterLab is told. The environment names where it listens and what it shows.

    It listens on one address, answers one foreign origin, the portal, and asks every request that changes something for
    its own word (XSRF) as usual.
    """
    copy, portal = COPY.value(environment), PORTAL.value(environment).rstrip("/")
    own = copy / ".course"
    return {
        "ServerApp": {
            "ip": environment["course_listen"],
            "port": int(environment["port"]),
            "port_retries": 0,  # the portal has been told this port
            "base_url": f"/node/{environment['host']}/{environment['port']}/",
            "root_dir": str(copy),
            "open_browser": False,
            "allow_origin": portal,
            "allow_remote_access": True,  # the name in the requests is the portal's; the password protects
            "allow_root": os.geteuid() == 0,
            "contents_manager_class": "course_utils.lab_files.CourseFiles",
        },
        "IdentityProvider": {"token": "", "secure_cookie": portal.startswith("https:")},
        "PasswordIdentityProvider": {
            "token": "",
            "secure_cookie": portal.startswith("https:"),
            "hashed_password": passwd(password, algorithm="argon2"),
            "password_required": True,
            "allow_password_change": False,
        },
        "KernelManager": {"transport": "ipc"},  # sockets in a private folder, not ports that others on the node reach
        "LabApp": {"workspaces_dir": str(own / "workspaces"), "user_settings_dir": str(own / "settings")},
    }


if __name__ == "__main__":
    word = sys.stdin.readline().rstrip("\n")
    if len(word) < 32:
        sys.exit("The course: the session has no password.")
    os.umask(0o077)
    file = Path(sys.argv[1])
    if (defaults := ROOT / ".jupyter" / "labconfig").is_dir():  # of JupyterLab's windows, as `make lab` has them
        shutil.copytree(defaults, file.parent / "labconfig")
    file.write_text(json.dumps(settings(word, dict(os.environ)), indent=1))
