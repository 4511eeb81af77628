"""Errors as LibreTranslate shapes them: `{"error": "..."}` and a status."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

RETRY_AFTER = 2
"""Seconds after which a client that was refused may try again."""


def refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> HTTPException:
    """To be raised by whoever refuses."""
    return HTTPException(status, message, dict(headers or {}))


def busy(message: str = "the server is busy") -> HTTPException:
    return refusal(503, message, {"Retry-After": str(RETRY_AFTER)})


def defect() -> HTTPException:
    return refusal(500, "a defect of the server; its log has more")


def error_response(error: HTTPException) -> JSONResponse:
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)
