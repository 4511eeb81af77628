"""The one error that a user can mend. Every room may raise it; the command line prints it as one line, exit code 2."""

from functools import wraps
from typing import Any, TypeVar

Record = TypeVar("Record")

NEEDS_TORCH = "needs torch, which is not installed: pip install 'headway[torch]'"
"""The end of a message about something that needs torch, where torch isn't installed."""


class UserError(ValueError):
    """What is wrong, where, and what to do about it, in one line."""


class LostModelError(UserError):
    """A model that is in use can't be read from its folder any more."""


def raises_user_error(record: type[Record]) -> type[Record]:
    """Makes a pydantic dataclass raise UserError, with the name of the first wrong field, for impossible values."""
    validate = record.__init__

    @wraps(validate)
    def checked(self: Record, *args: Any, **given: Any) -> None:
        try:
            validate(self, *args, **given)
        except ValueError as error:  # pydantic's
            first: dict[str, Any] = error.errors()[0]  # type: ignore[attr-defined]
            message = first["msg"].removeprefix("Value error, ").replace("Input should", "must")
            for long, short in (("greater than or equal to", "at least"), ("less than or equal to", "at most")):
                message = message.replace(long, short)
            place = f"{first['loc'][0]}={first['input']!r}: " if first["loc"] else ""
            raise UserError(place + message) from None

    record.__init__ = checked
    return record
