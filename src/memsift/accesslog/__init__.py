"""The access log: what a store was told and asked, so that its life can be lived again under other policies.

It holds vectors, ids, costs and times; no text and no metadata, ever. Vectors stay float32, bit for bit: a replay of
the log must find what the store found, and anything rounded would find something else now and then.

A log is bounded. When it is full, its oldest part goes: queries and uses for good, and memories too, but for those that
the store still holds, which stay as what there was when the rest began. Should they take more than half of the log,
the oldest of them go as well. Whatever is left names only what is left, or loses that label.
"""

from memsift.accesslog.events import ADD, LIMIT, NEED, QUERY, USE, Event, Listener, held_by
from memsift.accesslog.log import AccessLog

__all__ = [
    "ADD",
    "LIMIT",
    "NEED",
    "QUERY",
    "USE",
    "AccessLog",
    "Event",
    "Listener",
    "held_by",
]
