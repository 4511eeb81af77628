"""The routes: what a request means, and how its answer looks."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

import headway
from headway.insight import read_edits
from headway.insight.analyses import read_analyses
from headway.languages import english_name
from headway.serving.access import Access
from headway.serving.batcher import QueueFullError
from headway.serving.bodies import is_form, read_body
from headway.serving.choosing import AUTO, choose
from headway.serving.guard import Guard
from headway.serving.pairs import Pair, Pairs
from headway.serving.refusals import error_response, refusal
from headway.serving.schemas import (
    PROBLEMS,
    AlignAnswer,
    AlignRequest,
    Detection,
    DetectRequest,
    InspectRequest,
    Language,
    Status,
    TranslateAnswer,
    TranslateRequest,
    request_body,
)
from headway.serving.service import Service
from headway.serving.settings import Settings
from headway.serving.watch import Watch
from headway.text.detection import Detected

Fields = TypeVar("Fields", bound=BaseModel)


def make_app(service: Service) -> ASGIApp:
    """The whole server as an ASGI app."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="headway",
        version=headway.__version__,
        description="Translation, in the shapes of LibreTranslate's API.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    for kind in (HTTPException, Exception):
        app.add_exception_handler(kind, _leave_to_guard)
    access = Access(service.settings)
    _add_translating(app, service, access)
    _add_telling(app, service, access)
    _add_page(app)
    paths = [path for route in app.routes if (path := getattr(route, "path", None))]
    guarded: ASGIApp = Guard(app, service.settings, service.metrics)
    if service.settings.allowed_origins:
        guarded = _Cors(
            guarded,
            allow_origins=service.settings.allowed_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
            expose_headers=["Retry-After", "X-Request-ID"],
        )
    return Watch(guarded, service.metrics, paths)


def _add_translating(app: FastAPI, service: Service, access: Access) -> None:
    """What works, and may need a key."""
    settings, pairs = service.settings, service.pairs
    translate_body, inspect_body, align_body, detect_body = _bodies(pairs)

    @app.post("/translate", responses=PROBLEMS, response_model=TranslateAnswer, openapi_extra=translate_body)
    async def translate(request: Request) -> Response:
        """Translates a text, or each of a list."""
        wanted = await _fields(access, request, TranslateRequest)
        if service.is_full:
            raise QueueFullError
        texts = _texts("q", wanted.q, settings)
        is_list = isinstance(wanted.q, list)
        chosen, detected = await choose(service, texts, wanted.source, wanted.target, wanted.format, is_list=is_list)
        found = await service.translate(
            list(zip(texts, chosen, strict=True)),
            wanted.format,
            wanted.beam_size,
            1 + wanted.alternatives,
            wanted.terms(),
            confidence=wanted.confidence,
        )
        answer: dict[str, Any] = {"translatedText": [one.texts[0] for one in found]}
        if detected is not None:
            answer["detectedLanguage"] = [vars(one) for one in detected]
        if wanted.alternatives:
            answer["alternatives"] = [one.texts[1:] for one in found]
        if any(one.truncated for one in found):
            answer["truncated"] = [one.truncated for one in found]
        if wanted.confidence:
            answer["confidence"] = [one.confidence for one in found]
            answer["outOfDomain"] = [one.out_of_domain for one in found]
        if not is_list:
            answer = {name: values[0] for name, values in answer.items()}
        return JSONResponse(answer)

    @app.post("/detect", responses=PROBLEMS, response_model=list[Detection], openapi_extra=detect_body)
    async def detect(request: Request) -> Response:
        """The languages that a text may be in, of those that the server knows, likeliest first."""
        wanted = await _fields(access, request, DetectRequest)
        _check_length("q", wanted.q, settings.max_characters)
        [found] = await service.detect([wanted.q], pairs.codes)
        return JSONResponse([vars(one) for one in found or [Detected(pairs.first.source, 0.0)]])

    @app.post("/inspect", responses=PROBLEMS, openapi_extra=inspect_body)
    async def inspect(request: Request) -> Response:
        """The record of what happens inside the model while it translates one sentence."""
        wanted = await _fields(access, request, InspectRequest)
        _check_length("q", wanted.q, settings.max_characters)
        _check_length("translation", wanted.translation or "", settings.max_characters)
        edits, cases = read_edits(wanted.edits), [read_edits(case) for case in wanted.cases]
        [pair], _ = await choose(service, [wanted.q], wanted.source, wanted.target, is_list=False)
        if pair is None:
            raise refusal(400, f"source: the text is in {wanted.target} already, so there is nothing to look into")
        options = {"target": wanted.translation, "beam_size": wanted.beam_size, "edits": edits, "cases": cases}
        analyses = read_analyses([_with_pairs(one, pair) for one in wanted.analyses])
        options |= {"analyses": analyses, "order": wanted.order}
        record = await service.inspect(pair, wanted.q, options, wanted.arrays)
        return Response(record, media_type="application/json")

    @app.post("/align", responses=PROBLEMS, response_model=AlignAnswer, openapi_extra=align_body)
    async def align(request: Request) -> Response:
        """Links the words of a sentence with those of its translation, by the model's attention."""
        wanted = await _fields(access, request, AlignRequest)
        texts, translations = _texts("q", wanted.q, settings), _texts("translation", wanted.translation, settings)
        if isinstance(wanted.q, str) != isinstance(wanted.translation, str) or len(texts) != len(translations):
            raise refusal(400, "translation: one for each text of q is needed")
        chosen, _ = await choose(service, texts, wanted.source, wanted.target, is_list=isinstance(wanted.q, list))
        links = await service.align(list(zip(chosen, texts, translations, strict=True)))
        return JSONResponse({"links": links[0] if isinstance(wanted.q, str) else links})


def _bodies(pairs: Pairs) -> list[dict[str, Any]]:
    """What translate, inspect, align and detect are asked, with an example of the first model."""
    codes = {"source": [AUTO, *pairs.sources()], "target": pairs.targets()}
    [(text, translation), *_] = pairs.first.examples
    example = {"q": text, "source": pairs.first.source, "target": pairs.first.target}
    return [
        request_body(TranslateRequest, example, **codes),
        request_body(InspectRequest, {**example, "arrays": "none"}, **codes),
        request_body(AlignRequest, {**example, "translation": translation}, **codes),
        request_body(DetectRequest, example),
    ]


def _add_telling(app: FastAPI, service: Service, access: Access) -> None:
    """What the server says of itself."""
    settings, pairs = service.settings, service.pairs

    @app.get("/languages", response_model=list[Language])
    async def languages() -> Response:
        """The languages of the models, each with those into which it is translated."""
        return JSONResponse(
            [{"code": code, "name": english_name(code), "targets": pairs.targets(code)} for code in pairs.codes]
        )

    @app.get("/frontend/settings", response_model=dict[str, Any])
    async def frontend_settings() -> Response:
        """What a page that uses the server must know."""
        first = pairs.first
        return JSONResponse(
            {
                "apiKeys": access.needs_key,
                "charLimit": settings.max_characters,
                "frontendTimeout": 500,
                "keyRequired": access.needs_key,
                "language": {
                    "source": {"code": first.source, "name": english_name(first.source)},
                    "target": {"code": first.target, "name": english_name(first.target)},
                },
                "maxTexts": settings.max_texts,
                "models": [pair.about() for pair in pairs],
                "suggestions": False,
                "supportedFilesFormat": [],
            }
        )

    @app.get("/health", response_model=Status)
    async def health() -> Response:
        """Alive."""
        return JSONResponse({"status": "ok"})

    @app.get("/ready", response_model=Status, responses={503: {"model": Status}})
    async def ready() -> Response:
        """Whether requests should be sent here: the models are loaded, and the server isn't about to end."""
        if service.is_ready:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "ending" if service.draining else "stuck"}, 503)

    @app.get("/metrics", responses={403: PROBLEMS[403]})
    async def metrics(request: Request) -> Response:
        """Counts for Prometheus. A key, where one is needed, comes as `Authorization: Bearer KEY`."""
        _admit(access, request)
        return Response(service.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_page(app: FastAPI) -> None:
    page = files("headway.serving") / "page"
    glass = files("headway.glass") / "page"

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return FileResponse(os.fspath(page / "index.html"))  # type: ignore[call-overload]

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return FileResponse(os.fspath(page / "docs.html"))  # type: ignore[call-overload]

    app.mount("/page", StaticFiles(directory=os.fspath(page)))  # type: ignore[call-overload]
    if glass.is_dir():
        app.mount("/glass", StaticFiles(directory=os.fspath(glass)))  # type: ignore[call-overload]


def _with_pairs(analysis: Any, pair: Pair) -> Any:
    """An analysis as it is asked for; that of the heads gets the model's validation pairs. Raises HTTPException."""
    if analysis not in ("head_importance", {"kind": "head_importance"}):
        return analysis
    if not pair.validated:
        raise refusal(400, "analyses: head_importance needs pairs; this server has no validation pairs of the model")
    return {"kind": "head_importance", "pairs": list(pair.validated)}


def _admit(access: Access, request: Request, key: object = None) -> None:
    """Raises HTTPException for one who may not come, or comes too often."""
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    keys = [key if isinstance(key, str) else "", bearer.strip() if scheme.lower() == "bearer" else ""]
    access.admit(keys, request.client.host if request.client else None)


async def _fields(access: Access, request: Request, kind: type[Fields]) -> Fields:
    """The fields of a request, JSON or form, of one who may come. Raises HTTPException."""
    try:
        given = await read_body(request)
    except HTTPException:
        _admit(access, request)  # what can't be read counts, too
        raise
    _admit(access, request, given.get("api_key"))
    try:
        return kind.model_validate(
            {name: value for name, value in given.items() if value is not None}, strict=not is_form(request)
        )
    except ValidationError as error:
        raise refusal(400, _first_mistake(error)) from None


def _first_mistake(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    first = max(errors, key=lambda one: len(one["loc"]))  # of "no text" and "item 2 is no text" the latter
    name, last = first["loc"][0], first["loc"][-1]
    return f"{name}: {f'item {last + 1}: ' if isinstance(last, int) else ''}{first['msg']}"


def _texts(name: str, given: str | list[str], settings: Settings) -> list[str]:
    """The texts of a field. Raises HTTPException for too many, or one that is too long."""
    texts = [given] if isinstance(given, str) else given
    if len(texts) > settings.max_texts:
        raise refusal(400, f"{name}: {len(texts)} texts in one request, the limit is {settings.max_texts}")
    for text in texts:
        _check_length(name, text, settings.max_characters)
    return texts


def _check_length(name: str, text: str, most: int) -> None:
    if len(text) > most:
        raise refusal(400, f"{name}: a text of {len(text)} characters, the limit is {most}")


async def _leave_to_guard(_: Request, error: Exception) -> Response:
    """Otherwise each layer of the framework would have answers of its own."""
    raise error


class _Cors(CORSMiddleware):
    """Says in JSON, too, what a page of another origin may not do."""

    def preflight_response(self, request_headers: Headers) -> Response:
        answer = super().preflight_response(request_headers)
        if answer.status_code < 400:
            return answer
        headers = {name: value for name, value in answer.headers.items() if not name.startswith("content-")}
        return error_response(refusal(answer.status_code, bytes(answer.body).decode(), headers))
