"""The engine of page/ run by V8 within Python (extra `web`): the model on ids alone, to be compared with ours."""

from __future__ import annotations

import json
from typing import Any

from headway.errors import UserError
from headway.web.page import ON_IDS, script


class JavaScriptModel:
    """A model file as the browser's engine runs it. Ids are those of the model; a source has no <eos>."""

    def __init__(self, file: bytes, *, bos_id: int, eos_id: int, kernel: bool = True) -> None:
        """kernel: whether WebAssembly multiplies. Raises UserError where V8 isn't installed."""
        try:
            from py_mini_racer import MiniRacer
        except ImportError:
            raise UserError("mini-racer is not installed: pip install 'headway[web]'") from None
        self._context: Any = MiniRacer()
        self._context.eval(script(ON_IDS))
        self._context.eval(f"globalThis.file = new Uint8Array({len(file)})")[:] = file
        self._eos, self._bos = [eos_id], [bos_id]
        self.kernel: bool = self._run("open", f"file, {json.dumps(kernel)}")
        """Whether the kernel does multiply."""

    def translate(self, source: list[int], max_length: int) -> list[int]:
        """Greedy search."""
        return self.call("greedy", [*source, *self._eos], max_length)["ids"]

    def score(self, source: list[int], target: list[int]) -> list[float]:
        """The log-probability of each token of the target, and of <eos> after it."""
        return self.call("score", [*source, *self._eos], [*self._bos, *target, *self._eos])

    def call(self, function: str, *arguments: Any) -> Any:
        """What a function of page/on_ids.js gives. Arguments and result are JSON."""
        return self._run(function, ", ".join(map(json.dumps, arguments)))

    def _run(self, function: str, arguments: str) -> Any:
        return json.loads(self._context.eval(f"JSON.stringify(onIds.{function}({arguments}))"))
