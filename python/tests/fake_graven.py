"""The `graven` command on the fake engine: `python fake_graven.py ARGUMENTS`."""

import fake_engine

fake_engine.install()

from graven.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
