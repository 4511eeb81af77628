"""Scripts in node: a process that answers, a line of JSON for each line that it gets."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import headway.page
from headway.page.export import kernel_module

MODULES = Path(headway.page.__file__).parent


class Script:
    """A node process that runs a script."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, question: Any) -> Any:
        """What the script answers."""
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(question), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "node ended; its message is above"
        return json.loads(answer)


@contextmanager
def running(script: Path, *arguments: str) -> Iterator[Script]:
    """A process for a script."""
    command = ["node", str(script), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        try:
            yield Script(process)
        finally:
            assert process.stdin
            process.stdin.close()


@contextmanager
def page(script: Path, folder: Path) -> Iterator[Script]:
    """A process for a script that imports the page's modules as `./page/engine/….js`, and scripts beside it. folder: an
    empty one."""
    shutil.copytree(MODULES, folder / "page", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    (folder / "page" / "engine" / "kernel_code.js").write_text(kernel_module())
    for one in script.parent.glob("*.js"):
        shutil.copy(one, folder)
    (folder / "package.json").write_text('{"type": "module"}')  # else node may take .js for its older kind of modules
    with running(folder / script.name) as process:
        yield process
