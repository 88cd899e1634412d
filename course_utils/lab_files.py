"""How JupyterLab is handed the course's notebooks: as if this machine's kernel had already opened them.

A kernel tells JupyterLab its language and its version, JupyterLab writes that into the notebook, and a notebook that
did not hold exactly this looks unsaved as soon as it is opened. The version differs from machine to machine, so the
committed notebooks cannot hold it. It is put in on the way; the file stays as it is until the learner saves.

`.jupyter/jupyter_server_config.json` asks for `CourseFiles`. `make lab` reads it, and so does every JupyterLab that
`.venv` starts. One that a site starts from another Python shows the notebooks unsaved until they are saved once.
"""

import platform
from typing import Any

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager


def language_info() -> dict[str, Any]:
    """What an IPython kernel of this Python says about its language."""
    from ipykernel.ipkernel import IPythonKernel

    return {**IPythonKernel.language_info, "version": platform.python_version()}


class CourseFiles(AsyncLargeFileManager):
    """Jupyter's own files, but for the language of the course's notebooks."""

    async def get(self, path: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        """The file at a path, as Jupyter's contents service describes it."""
        model = await super().get(path, *arguments, **options)
        if model["type"] == "notebook" and model["content"] and "course" in model["content"]["metadata"]:
            model["content"]["metadata"]["language_info"] = language_info()
        return model
