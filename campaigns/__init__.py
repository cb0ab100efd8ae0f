"""Campaigns: hours of simulations, whose results tables and pages of the documentation show.

    python -m campaigns                      names all campaigns
    python -m campaigns NAME                 runs what is left of one, and writes tables and page
    python -m campaigns NAME --stored        writes the page from the tables
    python -m campaigns NAME --help

`python -m campaigns all` runs those of `ALL`, as `make campaigns` does.
"""

ALL = (
    "mutants", "properties", "explained", "checked", "soaked", "faults", "real_programs", "kills",
    "fuzz", "corners", "persistency", "powerfail", "scale", "rates", "steady", "clusters",
    "reproduced",
)  # fmt: skip
OTHERS = (
    "careless", "gallery", "known", "notebooks", "paces", "ratios", "stores", "stores_by_mode",
)  # fmt: skip
