"""A variant that cannot be run as it was asked for."""


class RefusedError(Exception):
    """A variant is not run, which says nothing of the code that is measured; the message says why and what to do."""
