"""`python -m graven` is the `graven` command."""

from graven.cli import main

if __name__ == "__main__":
    main()
