"""`python -m campaigns NAME`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from . import ALL, OTHERS, __doc__


def main(arguments: Sequence[str]) -> int:
    """Runs a campaign, or all of `ALL` until one fails; returns the exit code."""
    name, *others = arguments or ["--help"]
    if name == "all":
        return next(filter(None, (main([each, *others]) for each in ALL)), 0)
    if name not in (*ALL, *OTHERS):
        print(__doc__)
        for each in (*ALL, *OTHERS):
            about = str(import_module(f"campaigns.{each}").__doc__)
            print(f"    {each:14} {about.splitlines()[0]}")
        return 0 if name in ("-h", "--help") else 2
    module = import_module(f"campaigns.{name}")
    return int(module.CAMPAIGN.main(name, module.__doc__, others))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
