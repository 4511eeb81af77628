"""The one error that a user can mend. Every room may raise it; the command line prints it as one line, exit code 2."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

Record = TypeVar("Record")
_MESSAGES = {
    **dict.fromkeys(("missing", "missing_argument"), "is missing"),
    **dict.fromkeys(("extra_forbidden", "unexpected_keyword_argument"), "is unknown"),
}
"""Messages for pydantic's types of problems, in place of its own."""

NEEDS_TORCH = "needs torch, which is not installed: pip install 'headway[torch]'"
"""The end of a message about something that needs torch, where torch isn't installed."""


class UserError(ValueError):
    """One line that says what is wrong, where, and what to do about it."""


@contextmanager
def needing_extra(name: str) -> Iterator[None]:
    """Raises UserError, with the command that installs the extra, if a package can't be imported in the block."""
    try:
        yield
    except ImportError as error:
        raise UserError(f"{error.name} is not installed: pip install 'headway[{name}]'") from None


class LostModelError(UserError):
    """A model that is in use can't be read from its folder any more."""


def said_briefly(message: str) -> str:
    """One of pydantic's messages in headway's words, such as "must be at least 1"; any other stays as it is."""
    message = re.sub(r"^\w+ should", "must", message.removeprefix("Value error, "))
    message = message.replace("must be greater than or equal to", "must be at least")
    return message.replace("must be less than or equal to", "must be at most")


def first_problem(error: ValueError) -> str:
    """The first of pydantic's problems with a record, in a line with the field and its wrong value."""
    problem: dict[str, Any] = error.errors()[0]  # type: ignore[attr-defined]
    place, value = ".".join(str(part) for part in problem["loc"] if part != "[key]"), repr(problem["input"])
    place = place if place.isprintable() else repr(place)
    if message := _MESSAGES.get(problem["type"]):
        return f"{place} {message}"
    message = said_briefly(problem["msg"])
    if not place:
        return message
    value = "" if isinstance(problem["input"], dict) else f"={value if len(value) <= 100 else value[:100] + '...'}"
    return f"{place}{value}: {message}"


def raises_user_error(record: type[Record]) -> type[Record]:
    """Makes a pydantic dataclass raise UserError, with the name of the first wrong field, for impossible values."""
    validate = record.__init__

    @wraps(validate)
    def checked(self: Record, *args: Any, **given: Any) -> None:
        try:
            validate(self, *args, **given)
        except ValueError as error:  # pydantic's
            raise UserError(first_problem(error)) from None

    record.__init__ = checked
    return record
