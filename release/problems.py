"""What keeps a release from being made."""


class ReleaseError(Exception):
    """Says what is wrong, where, and what is allowed."""
