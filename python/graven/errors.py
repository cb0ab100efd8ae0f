"""Errors that the package raises itself, beside those of the engine."""


class OutputError(Exception):
    """A file cannot be written; the message names it and says why."""
