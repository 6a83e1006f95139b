"""Memories in a table of PostgreSQL with pgvector: scored, cut, archived and deleted there.

`mapping` says which columns mean what, `table` writes them in SQL, `scoring` makes the one statement of a plan,
`verdicts` settles what lies at the cut, `deletion` carries a plan out, `shard` is one of many tables under one budget.
"""

from memsift.errors import MissingExtra

try:
    import psycopg  # noqa: F401
except ImportError:
    raise MissingExtra("PostgreSQL needs psycopg: pip install 'memsift[pgvector]'") from None

from memsift.backends.pgvector.mapping import Mapping
from memsift.backends.pgvector.source import PgvectorSource

__all__ = ["Mapping", "PgvectorSource"]
