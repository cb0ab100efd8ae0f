"""Results as tables of other libraries, which have to be installed: pandas, polars, xarray."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from graven._engine import ConfigError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import xarray as xr


class Frames:
    """Base of results with rows in an Arrow table, and in tables of other libraries."""

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        raise NotImplementedError

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a data frame of pandas, which has to be installed.

        Raises:
            ImportError: it is not.

        Examples:
            >>> result = graven.compare("base,silo", "hash", transactions=200, from_start=True)
            >>> result.to_pandas()[["design", "workload", "committed_transactions"]]
              design workload  committed_transactions
            0   base     hash                     200
            1   silo     hash                     200
        """
        _needed("pandas", "to_pandas")
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The rows as a data frame of polars, which has to be installed.

        Raises:
            ImportError: it is not.

        Examples:
            >>> result = graven.compare("base,silo", "hash", transactions=200, from_start=True)
            >>> result.to_polars()["design"].to_list()
            ['base', 'silo']
        """
        polars = _needed("polars", "to_polars")
        frame: pl.DataFrame = polars.from_arrow(self.to_arrow())
        return frame


def dataset(table: pa.Table, axes: Sequence[str], numbers: Sequence[str]) -> xr.Dataset:
    """Columns of numbers over axes; what has no row is not a number.

    Raises:
        ImportError: xarray or pandas is not installed.
        ConfigError: two rows are at one place.
    """
    _needed("xarray", "to_xarray")
    _needed("pandas", "to_xarray")
    frame = table.select([*axes, *numbers]).to_pandas().set_index(list(axes))
    if frame.index.has_duplicates:
        at = dict(zip(axes, frame.index[frame.index.duplicated()][0], strict=True))
        raise ConfigError(f"to_xarray: several results at {at}; select what is to be compared")
    found: xr.Dataset = frame.to_xarray()
    return found


def _needed(library: str, method: str) -> Any:  # noqa: ANN401 - a module
    try:
        return import_module(library)
    except ImportError:
        raise ImportError(
            f"{method}() needs {library}, which is not installed: pip install {library} "
            "(to_arrow() works without it)"
        ) from None
