"""Which functions have been entered, as file:line; the copy in which this is measured adds to it."""

functions: set[str] = set()
