"""The reference source keeps what every source must keep."""

from __future__ import annotations

from dataclasses import replace

from memsift.backends import RamSource
from memsift.testing import SourceTests


class TestRamSource(SourceTests):
    def source_of(self, entries):
        return RamSource(entries, batch=13)

    def ids_in(self, source):
        return set(source.rows)

    def change(self, source, id_, **changes):
        source.rows[id_] = replace(source.rows[id_], **changes)
