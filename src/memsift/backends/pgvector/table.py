"""What the catalog says of a mapped table, and how its columns are written in SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg import sql

from memsift.backends.pgvector.mapping import UNITS, Mapping
from memsift.backends.pgvector.names import quoted
from memsift.errors import InvalidValue

if TYPE_CHECKING:
    import psycopg
    from psycopg.sql import Composable, Composed

STAMPS = {"timestamptz", "timestamp"}
WHOLE = {"int2", "int4", "int8"}
TEXTS = {"text", "varchar"}
ALLOWED = {
    "id": WHOLE | TEXTS | {"uuid"},
    "embedding": {"vector", "halfvec"},
    "time": STAMPS | WHOLE | {"float8", "numeric"},
    "created": STAMPS | WHOLE | {"float8", "numeric"},
    "count": WHOLE,
    "pin": {"bool"},
    "cost": WHOLE,
    "tenant": WHOLE | TEXTS | {"uuid"},
}
COLUMNS = """
    SELECT a.attname, t.typname, a.atttypmod, a.attnotnull
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped"""
# Of a partitioned table no index can be unique in the id alone, unless that is what it is partitioned by.
UNIQUE = """
    SELECT true FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = %s
    WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND a.attnum = ANY(i.indkey)
    AND (i.indnkeyatts = 1 OR c.relkind = 'p' OR c.relispartition) LIMIT 1"""


@dataclass(frozen=True)
class Table:
    """A mapped table, checked against the catalog.

    Parameters
    ----------
    mapping : Mapping
    schema : str
        Where it was found.
    types : dict
        The type of each mapped role.
    dim : int or None
        Length of the vectors, if the column says so.
    has_access : bool
        Whether memsift's own table is used.
    """

    mapping: Mapping
    schema: str
    types: dict[str, str]
    dim: int | None
    has_access: bool

    @classmethod
    def find(cls, db: psycopg.Connection[Any], mapping: Mapping) -> Table:
        """Look a mapping up.

        Raises
        ------
        InvalidValue
            No such table or column, a column of a type that cannot serve, ids that may repeat.
        """
        oid, schema = _relation(db, mapping)
        found = {name: rest for name, *rest in db.execute(COLUMNS, (oid,)).fetchall()}
        types = {}
        for role, name in mapping.columns.items():
            if role == "version" and name == "xmin":
                continue
            if name not in found:
                raise InvalidValue(
                    f"Mapping.{role} must be a column of {mapping.table!r:.70}, one of "
                    f"{', '.join(sorted(found))[:200]}; got {name!r:.70}"
                )
            types[role] = found[name][0]
            if types[role] not in ALLOWED.get(role, {types[role]}):
                raise InvalidValue(
                    f"Mapping.{role} must be a column of type {', '.join(sorted(ALLOWED[role]))}; "
                    f"{name!r:.70} is of type {types[role]}"
                )
        for name in mapping.kept:
            if name not in found:
                raise InvalidValue(f"Mapping.kept must name columns; there is no {name!r:.70}")
        _, modifier, not_null = found[mapping.id]
        unique = db.execute(UNIQUE, (mapping.id, oid)).fetchone()
        if not not_null or unique is None:
            raise InvalidValue(
                f"Mapping.id must be a column that is NOT NULL and unique; {mapping.id!r:.70} is not"
            )
        modifier = found[mapping.embedding][1]
        has_access = mapping.access is not None and _exists(db, schema, mapping.access)
        return cls(mapping, schema, types, modifier if modifier > 0 else None, has_access)

    # ---- names ----------------------------------------------------------------------------------

    @property
    def name(self) -> Composed:
        """The table, quoted."""
        return sql.SQL("{}").format(quoted(self.schema, self.mapping.table))

    @property
    def access(self) -> Composed:
        """memsift's own table, quoted."""
        assert self.mapping.access is not None
        return sql.SQL("{}").format(quoted(self.schema, self.mapping.access))

    @property
    def key(self) -> str:
        """By which name memsift's own table knows this one."""
        return f"{self.schema}.{self.mapping.table}"

    @property
    def id_array(self) -> Composable:
        """The type of an array of ids."""
        # The widest of a kind: an id that a narrow column cannot hold is unknown, not an error.
        kind = self.types["id"]
        wide = "bigint[]" if kind in WHOLE else "text[]" if kind in TEXTS else "uuid[]"
        return sql.SQL(wide)

    def column(self, role: str) -> Composed:
        """A mapped column of the table `t`, quoted."""
        return sql.SQL("t.{}").format(quoted(getattr(self.mapping, role)))

    @property
    def entries(self) -> Composed:
        """What stands after FROM: the table as `t`, and what memsift itself counted as `a`."""
        if not self.has_access:
            return sql.SQL("{} AS t").format(self.name)
        return sql.SQL("{} AS t LEFT JOIN {} AS a ON a.source = {} AND a.id = {}::text").format(
            self.name, self.access, sql.Placeholder("source"), self.column("id")
        )

    # ---- values ---------------------------------------------------------------------------------

    @property
    def provides(self) -> frozenset[str]:
        """The view's columns that can be given."""
        out = {"vectors", "cost"}
        if self.mapping.time or self.mapping.created or self.has_access:
            out.add("accessed_tick")
        if self.mapping.created:
            out.add("created_tick")
        if self.mapping.count or self.has_access:
            out.add("access_count")
        if self.mapping.pin or self.has_access:
            out.add("pinned")
        return frozenset(out)

    @property
    def tick(self) -> Composed:
        """When an entry was last accessed, as a bigint of at least 0."""
        parts = []
        if self.mapping.time:
            parts.append(self._moment("time", mixed=False))
        elif self.has_access:
            parts.append(_micros(sql.SQL("a.accessed_at")))
        if self.mapping.created and not (self._from_access and self._is_counter("created")):
            parts.append(self._moment("created", mixed=self._from_access))
        return sql.SQL("coalesce({})").format(sql.SQL(", ").join([*parts, sql.SQL("0::bigint")]))

    @property
    def created(self) -> Composed:
        """When it was added, as a bigint of at least 0."""
        if not self.mapping.created:
            return sql.SQL("{}").format(sql.SQL("0::bigint"))
        moment = self._moment("created", mixed=False)
        return sql.SQL("coalesce({}, 0::bigint)").format(moment)

    @property
    def count(self) -> Composed:
        """How often it was returned, as a bigint of at least 0."""
        return self._whole("count", "a.access_count", "0")

    @property
    def cost(self) -> Composed:
        """Its cost, as a bigint of at least 0."""
        return self._whole("cost", "a.cost", "1")

    @property
    def pinned(self) -> Composed:
        """Whether it must stay."""
        if self.mapping.pin:
            return sql.SQL("coalesce({}, false)").format(self.column("pin"))
        return sql.SQL("{}").format(
            sql.SQL("coalesce(a.pinned, false)" if self.has_access else "false")
        )

    @property
    def tenant(self) -> Composed:
        """To whom it belongs, as text."""
        if not self.mapping.tenant:
            return sql.SQL("{}").format(sql.SQL("NULL::text"))
        return sql.SQL('({}::text COLLATE "C")').format(self.column("tenant"))

    @property
    def raw_version(self) -> Composed:
        """What changes with the row, in its own type."""
        if not self.mapping.version:
            return sql.SQL("{}").format(sql.SQL("''"))
        return self.column("version")

    @property
    def version(self) -> Composed:
        """What changes with the row, as text."""
        return sql.SQL("{}::text").format(self.raw_version)

    @property
    def mark(self) -> Composed:
        """What an entry is like: tick, count and version, as text."""
        return sql.SQL("concat_ws('/', {}, {}, {})").format(self.tick, self.count, self.version)

    @property
    def by_id(self) -> Composed:
        """An id in the order of ours: texts by their bytes, whatever the database's language."""
        is_text = self.types["id"] in TEXTS
        return sql.SQL("{}").format(sql.SQL('id COLLATE "C"' if is_text else "id"))

    @property
    def _from_access(self) -> bool:
        return self.has_access and not self.mapping.time

    def _is_counter(self, role: str) -> bool:
        return self.types[role] not in STAMPS and self.mapping.unit == "ticks"

    def _whole(self, role: str, own: str, default: str) -> Composed:
        column = self.column(role) if getattr(self.mapping, role) else sql.SQL(own)
        if not getattr(self.mapping, role) and not self.has_access:
            return sql.SQL("{}::bigint").format(sql.SQL(default))
        return sql.SQL("greatest(0, coalesce({}, {}))::bigint").format(column, sql.SQL(default))

    def _moment(self, role: str, *, mixed: bool) -> Composed:
        """A time as a bigint: microseconds of a timestamp, a number as it is. `mixed`: in microseconds."""
        column, kind = self.column(role), self.types[role]
        if kind in STAMPS:
            return _micros(column)
        if mixed and self.mapping.unit != "ticks":
            factor = 1_000_000 // UNITS[self.mapping.unit]
            return sql.SQL("greatest(0, {} * {})::bigint").format(column, sql.Literal(factor))
        if kind in WHOLE:
            return sql.SQL("greatest(0, {})::bigint").format(column)
        # Fractions of a second count.
        return sql.SQL("greatest(0, {} * 1000000)::bigint").format(column)


def _micros(column: Composable) -> Composed:
    """A timestamp as whole microseconds since 1970; those before it are 0, the infinite ones the ends."""
    return sql.SQL(
        "CASE WHEN isfinite({c}) THEN greatest(0, extract(epoch FROM {c}) * 1000000)::bigint"
        " WHEN {c} > 'epoch' THEN 4611686018427387904 WHEN {c} < 'epoch' THEN 0 END"
    ).format(c=column)


def _relation(db: psycopg.Connection[Any], mapping: Mapping) -> tuple[int, str]:
    """The number and the schema of the table."""
    parts = [mapping.table] if mapping.schema is None else [mapping.schema, mapping.table]
    text = sql.Identifier(*parts).as_string(db)
    found = db.execute(
        "SELECT c.oid, n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.oid = to_regclass(%s) AND c.relkind IN ('r', 'p')",
        (text,),
    ).fetchone()
    if found is None:
        raise InvalidValue(
            f"Mapping.table must be a table that this role can see; got {'.'.join(parts)!r:.140}"
        )
    return found[0], found[1]


def _exists(db: psycopg.Connection[Any], schema: str, name: str) -> bool:
    text = sql.Identifier(schema, name).as_string(db)
    found = db.execute("SELECT to_regclass(%s) IS NOT NULL", (text,)).fetchone()
    return bool(found and found[0])
