"""Errors that the package raises itself, beside those of the engine."""


class OutputError(Exception):
    """A file cannot be written; the message names it and says why."""


class OutputRefusedError(OutputError):
    """A file could not be written if something had run; nothing has."""


class StoreError(Exception):
    """A folder cannot be used as a store of results; the message names it and says why."""
