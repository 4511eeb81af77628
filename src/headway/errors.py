"""The one error that a user can mend. Every room may raise it; the command line prints it as one line, exit code 2."""


class UserError(ValueError):
    """What is wrong, where, and what to do about it, in one line."""
