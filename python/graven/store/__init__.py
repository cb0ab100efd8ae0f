"""The result store: what has been simulated, kept for good.

`stored` says what a record is and how it stands in a file, `segments` how files are written and
read, `index` finds records and answers queries, `store` is all of it together, `keeper` what goes
into a digest and how tasks keep their results, `upkeep` what checks, cleans and merges stores.
"""

from graven.store.store import Store
from graven.store.stored import DamagedRecord, Request, StoredRecord

__all__ = ["DamagedRecord", "Request", "Store", "StoredRecord"]
