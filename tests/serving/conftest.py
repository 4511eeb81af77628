"""A server without a network: the app itself, over engines that copy."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from headway.decoding import SearchOptions
from headway.errors import UserError
from headway.serving.app import make_app
from headway.serving.pairs import Pairs
from headway.serving.service import Service
from headway.serving.settings import Settings
from headway.text.tokenizer import Piece
from headway.translator.glossary import Glossary


class CopyingTranslator:
    """Answers each text with itself, as `change` makes it; alternatives have a number in front."""

    def __init__(
        self,
        source: str = "de",
        target: str = "en",
        tags: tuple[str, ...] = (),
        change: Callable[[str], str] = lambda text: text,
        longest: int = 400,
        seconds: float = 0.0,
        refuses: str = "",
        longest_target: int = 400,
    ) -> None:
        self.info = SimpleNamespace(
            source_language=source,
            target_language=target,
            domain="animals",
            num_parameters=1234,
            source_tokenizer=SimpleNamespace(many_sources=False),
        )
        self.target_languages = list(tags)
        self.device = "cpu"
        self.calls: list[list[str]] = []
        self.options: list[dict[str, Any]] = []
        self.stopped = "eos"
        self.engine = "torch"
        self.aligns = True
        """Whether equal words of a text and its translation are aligned."""
        self.confidences: dict[str, float] = {}
        """Of texts; a text with a question mark is out of domain."""
        self._change, self._longest, self._seconds, self._refuses = change, longest, seconds, refuses
        self._longest_target = longest_target
        self.go_on = threading.Event()
        self.go_on.set()

    def is_readable(self, text: str, most: int | None = None, *, side: str = "source") -> bool:
        longest = self._longest if side == "source" else self._longest_target
        return len(text) <= min(longest, most or longest)

    def search_options(self, beam_size: int | None = None) -> SearchOptions:
        return SearchOptions(beam_size=4 if beam_size is None else beam_size)

    def check_glossary(self, _: Glossary) -> None:
        """Raises UserError where the translator `refuses` all."""
        if self._refuses:
            raise UserError(self._refuses)

    def translate(self, texts: list[str], **options: Any) -> list[Any]:
        self.calls.append(texts)
        self.options.append(options)
        self.go_on.wait(30)
        time.sleep(self._seconds)
        return [self._translation(text, options["n_best"]) for text in texts]

    def calibration(self) -> None:
        if not self.confidences:
            raise UserError("isn't calibrated")

    def inspect(self, text: str, **options: Any) -> Any:
        shown = {
            name: [str(one) for one in value] if name in ("edits", "cases", "analyses") else value
            for name, value in options.items()
        }
        return SimpleNamespace(to_json=lambda arrays: json.dumps({"text": text, "arrays": arrays, **shown}))

    def align(self, sources: list[str], targets: list[str]) -> list[list[tuple[int, int]]]:
        """Links equal words."""
        pairs = [(one.split(), other.split()) for one, other in zip(sources, targets, strict=True)]
        return [
            [(i, j) for i, word in enumerate(one) for j, other_word in enumerate(other) if word == other_word]
            for one, other in pairs
        ]

    def _translation(self, text: str, n_best: int) -> Any:
        found = self._change(text)
        others = [self._aligned(text, f"{number} {found}") for number in range(2, n_best + 1)]
        return SimpleNamespace(
            **vars(self._aligned(text, found)),
            alternatives=others,
            stopped=self.stopped,
            confidence=self.confidences.get(text),
            out_of_domain="?" in text,
            token_counts=(len(pieces(text)), len(pieces(found))),
        )

    def _aligned(self, source: str, text: str) -> Any:
        """Tokens are words; those that are the same are aligned."""
        tokens, source_tokens = pieces(text), pieces(source)
        places = {token.text: place for place, token in enumerate(source_tokens)}
        alignment = [places.get(token.text) if self.aligns else None for token in tokens]
        return SimpleNamespace(text=text, tokens=tokens, source_tokens=source_tokens, alignment=alignment)


def pieces(text: str) -> list[Piece]:
    """The words of a text, and its punctuation marks, as tokens."""
    return [Piece(match[0], *match.span()) for match in re.finditer(r"\w+|[^\w\s]", text)]


class Server:
    """The app in this process, asked one request after the other or several at once."""

    def __init__(self, *translators: CopyingTranslator, examples: Any = None, **settings: Any) -> None:
        """examples: as `Pairs` has them."""
        pairs = Pairs(translators or [CopyingTranslator()], examples)  # type: ignore[arg-type]
        self.service = Service(pairs, Settings(**settings))
        self.app = make_app(self.service)

    def ask(self, *requests: tuple[str, str, dict[str, Any]]) -> list[httpx.Response]:
        """Each (method, path, options of httpx) at the same time."""
        return asyncio.run(self._ask(requests))

    async def _ask(self, requests: tuple[tuple[str, str, dict[str, Any]], ...]) -> list[httpx.Response]:
        async with self.client() as client:
            return await asyncio.gather(
                *(client.request(method, path, **options) for method, path, options in requests)
            )

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(self._app_at), base_url="http://localhost")

    async def _app_at(self, scope: Any, receive: Any, send: Any) -> None:
        """The app, asked from the address in the header `x-address`."""
        address = dict(scope["headers"]).get(b"x-address", b"127.0.0.1").decode()
        await self.app({**scope, "client": (address, 1)}, receive, send)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.ask(("POST", path, options))[0]

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.ask(("GET", path, options))[0]

    def translate(self, q: Any, **fields: Any) -> Any:
        """The answer to a request that is well formed."""
        answer = self.post("/translate", json={"q": q, "source": "de", "target": "en", **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()


def at(number: int) -> dict[str, dict[str, str]]:
    """Options of a request from an address of its own."""
    return {"headers": {"x-address": f"10.0.0.{number}"}}


async def until(condition: Callable[[], Any]) -> None:
    """Waits until something is so."""
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it never was so")


@pytest.fixture
def serve():
    """Makes servers, and ends them after the test."""
    servers: list[Server] = []

    def make(*translators: CopyingTranslator, **settings: Any) -> Server:
        servers.append(Server(*translators, **settings))
        return servers[-1]

    yield make
    for server in servers:
        server.service.close()
