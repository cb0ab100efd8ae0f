"""CPU seconds of the tests, held to a table."""
