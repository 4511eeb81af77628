"""The one error that a user can mend. Every room may raise it; the command line prints it as one line, exit code 2."""

NEEDS_TORCH = "needs torch, which is not installed: pip install 'headway[torch]'"
"""The end of a message about something that needs torch, where torch isn't installed."""


class UserError(ValueError):
    """What is wrong, where, and what to do about it, in one line."""


class LostModelError(UserError):
    """A model that is in use can't be read from its folder any more."""
