"""The result store: what has been simulated, kept for good.

`records` says what a record is and how it stands in a file, `segments` how files are written and
read, `index` finds records and answers queries, `store` is all of it together, `keeping` what goes
into a digest and how tasks keep their results, `upkeep` what checks, cleans and merges stores.
"""

from graven.store.records import DamagedRecord, Request, StoredRecord
from graven.store.store import Store

__all__ = ["DamagedRecord", "Request", "Store", "StoredRecord"]
