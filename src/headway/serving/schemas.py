"""Requests and answers of the API, with their descriptions."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from headway.errors import UserError
from headway.insight.analyses import NAMES
from headway.page import ArraysKind
from headway.serving.settings import WIDEST_BEAM
from headway.text.detection import Detected
from headway.text.numbers import NumberCheck
from headway.translator.glossary import Glossary

JSON = "application/json"
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")

BeamSize = Annotated[int, Field(ge=1, le=WIDEST_BEAM)]

MOST_EDITS, MOST_CASES = 16, 4  # edits at a time, and lists of edits: each list is another translation
MOST_ARRAYS = 32  # of a record, in float32
MOST_TERMS = 1000  # of a glossary


def _texts(given: Any) -> Any:
    """Raises ValueError for no text, and at the first item that is none; pydantic would collect a million errors."""
    if given in ("", []):
        raise ValueError("is empty")
    if isinstance(given, list):
        wrong = next((number for number, one in enumerate(given, 1) if not isinstance(one, str)), None)
        if wrong is not None:
            raise ValueError(f"item {wrong} is not text")
    return given


Texts = Annotated[str | list[str], BeforeValidator(_texts)]


def _whole(given: Any) -> Any:
    """A number as LibreTranslate reads it, also as text or with a point."""
    try:
        return int(given) if isinstance(given, str | float) and int(given) == float(given) else given
    except (ValueError, OverflowError):  # of an infinite number
        return given


class _Request(BaseModel):
    api_key: str | None = Field(None, description="If the server needs one.")


class _Directed(_Request):
    source: str = Field(description="Language code, or `auto`.")
    target: str = Field(description="Language code.")


class TranslateRequest(_Directed):
    """Texts to translate."""

    q: Texts = Field(description="A text, or a list of texts.")
    format: Annotated[Literal["text", "html"], BeforeValidator(lambda given: "text" if given == "" else given)] = Field(
        "text", description="`html` keeps tags in place."
    )
    alternatives: Annotated[int, BeforeValidator(_whole)] = Field(
        0, ge=0, lt=WIDEST_BEAM, description="Further translations of each text."
    )
    beam_size: BeamSize | None = Field(None, description="Default: the model's own. headway extension.")
    glossary: dict[str, str] | str | None = Field(
        None,
        description="Terms that translations must have: an object of source and target terms, or, as in a form, lines "
        "of a source term, a TAB and a target term. headway extension.",
    )
    confidence: bool = Field(
        False,
        description="Also how likely each translation is acceptable. Needs a calibrated model. headway extension.",
    )

    def terms(self) -> Glossary | None:
        """Raises UserError."""
        if not self.glossary:
            return None
        given = self.glossary.splitlines() if isinstance(self.glossary, str) else self.glossary
        if len(given) > MOST_TERMS:
            raise UserError(f"glossary: {len(given)} terms, the limit is {MOST_TERMS}")
        return Glossary.parse(given, "glossary") if isinstance(given, list) else Glossary.of(given.items())


class UploadedFile(NamedTuple):
    """A file in a form."""

    name: str
    data: bytes


def _file(given: Any) -> Any:
    if isinstance(given, UploadedFile):
        return given
    raise ValueError("must be one file of a multipart form")


class FileRequest(_Directed):
    """A file to translate."""

    file: Annotated[Any, BeforeValidator(_file), WithJsonSchema({"type": "string", "format": "binary"})] = Field(
        description="A text or a document; the end of its name tells its kind."
    )


class FileAnswer(BaseModel):
    """The address of the translation, which is kept for ten minutes."""

    translatedFileUrl: str  # noqa: N815  # LibreTranslate's name
    truncated: int | None = Field(
        None, description="Present if translations were cut off at the model's maximum length: of so many texts."
    )


class DetectRequest(_Request):
    """A text of unknown language."""

    q: Texts = Field(description="A text, or a list of texts.")


class InspectRequest(_Directed):
    """A sentence to inspect."""

    q: str = Field(description="One sentence.")
    translation: str | None = Field(None, description="Inspect this translation; default: the model's own.")
    beam_size: BeamSize | None = Field(None, description="Default: the model's own.")
    edits: list[Any] = Field([], max_length=MOST_EDITS, description="Changes of the model or the text.")
    cases: list[Annotated[list[Any], Field(max_length=MOST_EDITS)]] = Field(
        [], max_length=MOST_CASES, description="Lists of edits, each tried separately."
    )
    order: bool = Field(False, description="Also two sentences of the same words in another order.")
    analyses: list[Any] = Field([], max_length=len(NAMES), description="Analyses of the translation, by name.")
    arrays: ArraysKind | Annotated[list[str], Field(max_length=MOST_ARRAYS)] = Field(
        "layers", description="Which numbers the record has; `layers`: all but the logits; a list of names: in float32."
    )


class AlignRequest(_Directed):
    """Texts and translations with words to link."""

    q: Texts = Field(description="A sentence, or a list of sentences.")
    translation: Texts = Field(description="Its translation, or those of a list.")


class TranslateAnswer(BaseModel):
    """`translatedText` is a list where `q` is one, and so are the other fields."""

    translatedText: str | list[str]  # noqa: N815  # LibreTranslate's name
    detectedLanguage: Detected | list[Detected] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None
    truncated: bool | list[bool] | None = Field(
        None, description="Present if a translation was cut off at the model's maximum length."
    )
    numbers: NumberCheck | list[NumberCheck] | None = Field(
        None, description="Present if a translation lacks or invents a number. headway extension."
    )
    confidence: float | list[float | None] | None = Field(
        None,
        description="On request: the probability that the translation of the least likely sentence is acceptable; null "
        "for a text without words or with a sentence that is too long to judge.",
    )
    outOfDomain: bool | list[bool] | None = Field(  # noqa: N815
        None, description="With `confidence`: whether a sentence is unlike the text that the model was calibrated on."
    )


class AlignAnswer(BaseModel):
    """`links` are those of each text where `q` is a list."""

    links: list[tuple[int, int]] | list[list[tuple[int, int]]] = Field(
        description="Pairs: number of the word of `q`, number of the word of `translation`, from 0. White space "
        "separates words."
    )


class Language(BaseModel):
    """A language and what it is translated into."""

    code: str
    name: str
    targets: list[str]


class Problem(BaseModel):
    """An error."""

    error: str


class Status(BaseModel):
    """`ok`, `ready`, or why not."""

    status: str


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The request can't be fulfilled; the error says why."},
    403: {"model": Problem, "description": "A valid api_key is needed."},
    408: {"model": Problem, "description": "The body didn't come in time."},
    413: {"model": Problem, "description": "The body is too large."},
    429: {"model": Problem, "description": "Too many requests; Retry-After says when to come again."},
    500: {"model": Problem, "description": "A defect of the server."},
    503: {"model": Problem, "description": "Too busy, or the time is up; Retry-After says when to come again."},
}


def described(kind: type[BaseModel], example: Mapping[str, Any], choices: Mapping[str, list[str]]) -> dict[str, Any]:
    """FastAPI's options for a route that takes JSON or a form. `example` and `choices`, the possible values of a field,
    may have fields of other requests too."""
    schema = kind.model_json_schema()
    fields = schema["properties"]
    for name in choices.keys() & fields:
        fields[name]["enum"] = choices[name]
    given = {name: value for name, value in example.items() if name in fields}
    content = {one: {"schema": schema, "example": given} for one in (FORMS[1:] if "file" in fields else (JSON, *FORMS))}
    return {"responses": PROBLEMS, "openapi_extra": {"requestBody": {"required": True, "content": content}}}
