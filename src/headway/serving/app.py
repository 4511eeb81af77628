"""The routes of the server: requests in, answers in LibreTranslate's form out."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote
from weakref import WeakValueDictionary

from babel import Locale, UnknownLocaleError
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

import headway
from headway import page
from headway.errors import UserError
from headway.insight.analyses import read_analyses
from headway.insight.what_if import read_edits
from headway.languages import english_name, is_language, read_code
from headway.serving import schemas, units
from headway.serving.admission import Client, Clients
from headway.serving.batcher import QueueFullError
from headway.serving.files import SUPPORTED, KeptFiles, translated_file
from headway.serving.guard import Guard, Watch
from headway.serving.looking_inside import links_of, record
from headway.serving.pairs import AskedText, LanguagePair, Pairs
from headway.serving.requests import Fields, fields
from headway.serving.service import AUTO, SentenceProgress, Service
from headway.serving.settings import Settings
from headway.text.detection import Detected


def make_app(service: Service) -> ASGIApp:
    """The whole server as an ASGI app."""
    app = FastAPI(
        title="headway",
        version=headway.__version__,
        description="LibreTranslate-compatible translation API.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={HTTPException: _leave_to_guard, Exception: _leave_to_guard},
    )
    clients = Clients(service.settings, service.metrics.units.inc)
    _add_translation(app, service, clients)
    _add_files(app, service, clients)
    _add_insight(app, service, clients)
    _add_information(app, service, clients)
    paths = [path for route in app.routes if (path := getattr(route, "path", None))]
    guarded: ASGIApp = Guard(app, service.settings, service.metrics, clients)
    if service.settings.allowed_origins:
        guarded = CORSMiddleware(
            guarded,
            allow_origins=service.settings.allowed_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
            expose_headers=["Retry-After", "X-Request-ID"],
        )
    return Watch(guarded, service.metrics, paths, lambda: service.draining)


def _add_translation(app: FastAPI, service: Service, clients: Clients) -> None:
    """Adds the routes that translate, and detect languages."""
    settings, pairs = service.settings, service.pairs
    described, example = _description(pairs)

    @app.post("/translate", response_model=schemas.TranslateAnswer, **described(schemas.TranslateRequest, example))
    async def translate(request: Request) -> Response:
        """Translates a text, or each of a list."""
        async with admitted(request, schemas.TranslateRequest, clients) as (wanted, client):
            if service.batcher.is_full:
                raise QueueFullError
            texts = _texts("q", wanted.q, settings)
            chosen, detected = await service.choose(wanted, texts, client.name)
            asked = [AskedText(text, pair, wanted.format) for text, pair in zip(texts, chosen, strict=True)]
            clients.charge(client, units.of_translation(wanted, asked), paid=1)
            found = await service.translate(wanted, asked, client.name)
        answer: dict[str, Any] = {"translatedText": [one.texts[0] for one in found]}
        if detected is not None:
            answer["detectedLanguage"] = [vars(one) for one in detected]
        if wanted.alternatives:
            answer["alternatives"] = [one.texts[1:] for one in found]
        if any(one.truncated for one in found):
            answer["truncated"] = [one.truncated for one in found]
        numbers = await service.check_numbers([one.texts[0] for one in found], asked, client.name)
        if any(numbers):
            answer["numbers"] = [one.to_dict() for one in numbers]
        if wanted.confidence:
            answer["confidence"] = [one.confidence for one in found]
            answer["outOfDomain"] = [one.out_of_domain for one in found]
        if isinstance(wanted.q, str):
            answer = {name: values[0] for name, values in answer.items()}
        return JSONResponse(answer)

    @app.post("/detect", response_model=list[Detected], **described(schemas.DetectRequest, example))
    async def detect(request: Request) -> Response:
        """Possible languages of a text, or of a list together, among those of the models, most likely first."""
        async with admitted(request, schemas.DetectRequest, clients) as (wanted, client):
            texts = _texts("q", wanted.q, settings)
            clients.charge(client, units.of_detection(texts), paid=1)
            found = await service.detect_among_all(texts, client.name)
        likely = [one for one in found if one.confidence] or [Detected(pairs.first.source, 0.0)]
        return JSONResponse([vars(one) for one in likely])


def _add_files(app: FastAPI, service: Service, clients: Clients) -> None:
    """Adds the routes that translate files and give them back."""
    described, example = _description(service.pairs)
    kept, under_way = KeptFiles(), WeakValueDictionary[str, SentenceProgress]()

    @app.post("/translate_file", response_model=schemas.FileAnswer, **described(schemas.FileRequest, example))
    async def translate_file(request: Request) -> Response:
        """Translates a file, and tells where its translation can be fetched for some minutes."""
        async with admitted(request, schemas.FileRequest, clients) as (wanted, client):
            if service.batcher.is_full:
                raise QueueFullError
            progress = under_way[request.state.request_id] = SentenceProgress()
            made = await translated_file(service, wanted, client.name, partial(clients.charge, client), progress)
        token = kept.keep(made, client.name)
        answer: dict[str, Any] = {"translatedFileUrl": f"{request.base_url}download_file/{token}.{quote(made.name)}"}
        return JSONResponse({**answer, "truncated": made.truncated} if made.truncated else answer)

    @app.get("/progress/{request_id}", include_in_schema=False)
    async def progress_of(request_id: str) -> Response:
        return JSONResponse(vars(under_way.get(request_id) or SentenceProgress()))

    @app.get("/download_file/{name}", include_in_schema=False)
    async def download_file(name: str) -> Response:
        found = kept.get(name.partition(".")[0])
        if found is None:
            raise HTTPException(404, "there is no such file, or not any more")
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(found.name)}"}
        return Response(found.data, media_type="application/octet-stream", headers=headers)


def _add_insight(app: FastAPI, service: Service, clients: Clients) -> None:
    """Adds the routes that look into the model."""
    settings = service.settings
    described, example = _description(service.pairs)
    asked = {name: value for name, value in example.items() if name != "translation"}
    about_record = described(schemas.InspectRequest, {**asked, "arrays": "none"})

    @app.post("/inspect", include_in_schema=settings.inspecting, **about_record)
    async def inspect(request: Request) -> Response:
        """The computation inside the model while it translates one sentence, as a record."""
        async with admitted(request, schemas.InspectRequest, clients) as (wanted, client):
            if not settings.inspecting:
                raise HTTPException(404, "this server doesn't inspect: see --no-inspect")
            clients.charge(client, units.of_record(wanted), paid=1)
            texts, _ = _texts("q", wanted.q, settings), _texts("translation", wanted.translation or "", settings)
            [pair], _ = await service.choose(wanted, texts, client.name)
            if pair is None:
                raise UserError(f"source: the text is in {wanted.target} already, so there is nothing to look into")
            options = {
                "target": wanted.translation,
                "beam_size": wanted.beam_size,
                "edits": read_edits(wanted.edits),
                "cases": [*map(read_edits, wanted.cases)],
                "order": wanted.order,
                "analyses": read_analyses([_with_pairs(one, pair) for one in wanted.analyses]),
            }
            found = await service.inspecting.call(client.name, record, pair, wanted.q, options, wanted.arrays)
        return Response(found, media_type=schemas.JSON)

    @app.post("/align", response_model=schemas.AlignAnswer, **described(schemas.AlignRequest, example))
    async def align(request: Request) -> Response:
        """Links the words of a sentence with those of its translation, by the model's attention."""
        async with admitted(request, schemas.AlignRequest, clients) as (wanted, client):
            texts, translations = _texts("q", wanted.q, settings), _texts("translation", wanted.translation, settings)
            if type(wanted.q) is not type(wanted.translation) or len(texts) != len(translations):
                raise UserError("translation: one for each text of q is needed")
            chosen, _ = await service.choose(wanted, texts, client.name)
            clients.charge(client, units.of_alignment(texts, translations), paid=1)
            pairs_of_texts = list(zip(chosen, texts, translations, strict=True))
            links = await service.aligning.call(client.name, links_of, pairs_of_texts)
        return JSONResponse({"links": links[0] if isinstance(wanted.q, str) else links})


def _add_information(app: FastAPI, service: Service, clients: Clients) -> None:
    """Adds the routes that describe the server, and its page."""
    settings, pairs = service.settings, service.pairs

    @app.get("/languages", response_model=list[schemas.Language])
    async def languages(request: Request) -> Response:
        """The languages of the models, each with its targets and itself; their names as `Accept-Language` says."""
        locale = _locale(request.headers.get("accept-language", ""), pairs.codes)
        targets = {code: list(dict.fromkeys([*pairs.targets(code), code])) for code in pairs.codes}
        return JSONResponse([{**_named(code, locale), "targets": some} for code, some in targets.items()])

    @app.get("/spec", include_in_schema=False)
    async def spec() -> Response:
        return JSONResponse(app.openapi())

    @app.get("/frontend/settings", response_model=dict[str, Any])
    async def frontend_settings() -> Response:
        """Limits and models of the server, for a page that uses it."""
        return JSONResponse(
            {
                "apiKeys": bool(settings.api_keys),
                "charLimit": settings.max_characters,
                "filesTranslation": True,
                "frontendTimeout": 500,
                "keyRequired": bool(settings.api_keys),
                "language": {"source": _named(pairs.first.source), "target": _named(pairs.first.target)},
                "maxTexts": settings.max_texts,
                "models": [pair.about() for pair in pairs.shown],
                "suggestions": False,
                "supportedFilesFormat": SUPPORTED,
            }
        )

    @app.get("/health", response_model=schemas.Status)
    async def health() -> Response:
        """Alive."""
        return JSONResponse({"status": "ok"})

    @app.get("/ready", response_model=schemas.Status, responses={503: {"model": schemas.Status}})
    async def ready() -> Response:
        """Whether requests should be sent here: the models are loaded, and the server isn't about to end."""
        if service.is_ready:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "ending" if service.draining else "stuck"}, 503)

    @app.get("/metrics", responses={403: schemas.PROBLEMS[403]})
    async def metrics(request: Request) -> Response:
        """Counts for Prometheus. Where a key is needed, send it as `Authorization: Bearer KEY`."""
        clients.admit_to_metrics(request)
        return Response(service.metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")

    folder = Path(page.__path__[0])

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return FileResponse(folder / "served" / "index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return FileResponse(folder / "served" / "docs.html")

    app.mount("/page", StaticFiles(directory=folder / "served"))
    app.mount("/glass", StaticFiles(directory=folder / "views"))


def _locale(accepted: str, codes: Iterable[str]) -> Locale | None:
    """The first of the languages that a client accepts that is one of the page or of these; Babel keeps in memory what
    it has loaded."""
    asked = [one.partition(";")[0].strip() for one in accepted[:1000].split(",")]
    with suppress(ValueError, UnknownLocaleError):
        return Locale.negotiate(asked, ["en", "ko", *(read_code(code).language for code in codes)], sep="-")
    return None


def _description(pairs: Pairs) -> tuple[Callable[..., dict[str, Any]], dict[str, Any]]:
    """`schemas.described` with the languages of the pairs, and fields of an example."""
    [(text, translation), *_] = pairs.first.examples
    choices = {"source": [AUTO, *pairs.sources()], "target": pairs.targets()}
    example = {"q": text, "source": pairs.first.source, "target": pairs.first.target, "translation": translation}
    return partial(schemas.described, choices=choices), example


@asynccontextmanager
async def admitted(request: Request, kind: type[Fields], clients: Clients) -> AsyncIterator[tuple[Fields, Client]]:
    """The fields of a request and its client, with a place for the work. Raises UserError, HTTPException."""
    wanted, client = await fields(request, kind, clients)
    with clients.places.kept(client.name, "too many requests at once"):
        yield wanted, client


def _named(code: str, locale: Locale | None = None) -> dict[str, str]:
    name = None
    with suppress(ValueError, UnknownLocaleError):
        known = "_".join(filter(None, read_code(code)))
        name = locale and is_language(code) and Locale.parse(known).get_display_name(locale)
    return {"code": code, "name": name or english_name(code)}


def _with_pairs(analysis: Any, pair: LanguagePair) -> Any:
    """The request for an analysis; that of the heads gets the model's validation pairs. Raises UserError."""
    if analysis not in ("head_importance", {"kind": "head_importance"}):
        return analysis
    if not pair.validated:
        raise UserError("analyses: head_importance needs pairs; this server has no validation pairs of the model")
    return {"kind": "head_importance", "pairs": list(pair.validated)}


def _texts(name: str, given: str | list[str], settings: Settings) -> list[str]:
    """The texts of a field. Raises UserError for too many, or one that is too long."""
    texts = [given] if isinstance(given, str) else given
    if len(texts) > settings.max_texts:
        raise UserError(f"{name}: {len(texts)} texts in one request, the limit is {settings.max_texts}")
    for text in texts:
        if len(text) > settings.max_characters:
            raise UserError(f"{name}: a text of {len(text)} characters, the limit is {settings.max_characters}")
    return texts


async def _leave_to_guard(_: Request, error: Exception) -> Response:
    """Keeps layers of the framework from giving answers of their own."""
    raise error
