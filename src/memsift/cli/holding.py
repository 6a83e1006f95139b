"""Commands that fill a store and look into it: init, add, search, stats, namespaces."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from memsift.cli.options import (
    budget_of,
    budget_options,
    namespace_option,
    open_store,
    policy_of,
    store_file,
)
from memsift.cli.output import json_option, print_json, progress_rows, show
from memsift.errors import InvalidValue, MemsiftError


@click.command()
@store_file
@click.option("--dim", required=True, type=int, help="Length of every vector.")
@budget_options
@click.option("--policy", help="Such as coherence:gamma=0.5; see `memsift bench replay`.")
@click.option(
    "--durability", type=click.Choice(["normal", "full"]), default="normal", show_default=True
)
@click.option(
    "--index",
    type=click.Choice(["exact", "hnsw", "auto"]),
    help="What answers searches, from now on; hnsw needs memsift[ann].",
)
@namespace_option
@json_option
def init(
    file: Path,
    dim: int,
    policy: str | None,
    durability: str,
    index: str | None,
    namespace: str,
    as_json: bool,
    **budget: Any,
) -> None:
    """Make a store, or another namespace in one.

    \b
    Example:
      memsift init agent.memsift --dim 384 --budget 10000 --budget-cost 2000000
    """
    from memsift.store import MemoryStore

    limits = budget_of(budget["budget_entries"], budget["budget_bytes"], budget["budget_cost"])
    with MemoryStore.open(
        file, dim, namespace, limits, policy_of(policy), durability=durability, index=index
    ) as store:
        if as_json:
            print_json(store.stats().to_dict())
        else:
            click.echo(f"{file}: {store!r}, namespace {namespace}")


@click.command()
@store_file
@click.argument("source", type=click.Path(path_type=Path, allow_dash=True))
@namespace_option
@json_option
def add(file: Path, source: Path, namespace: str, as_json: bool) -> None:
    """Add the vectors of a .npy, a .npz or a file of JSON lines; - reads JSON lines from stdin.

    Each thousand is stored whole or not at all; a bad line ends the command and leaves the thousands before it.

    \b
    Example:
      memsift add agent.memsift vectors.npy
      echo '{"vector": [0.1, 0.9], "metadata": {"kind": "fact"}, "cost": 12}' | memsift add agent.memsift -
    """
    from memsift.formats.batches import read_batches, read_lines

    batches, rows = (
        (read_lines(sys.stdin.buffer, "stdin"), None)
        if str(source) == "-"
        else read_batches(source)
    )
    added = 0
    with open_store(file, namespace) as store, progress_rows("adding", rows) as advance:
        evicted = store.stats().evicted
        try:
            for batch in batches:
                store.add_many(batch.vectors, **batch.values)
                added += len(batch)
                advance(len(batch))
        except MemsiftError as error:
            raise type(error)(f"{error} (of what came before, {added:,} are stored)") from error
        stats = store.stats()
        gone = stats.evicted - evicted
    if as_json:
        print_json({"added": added, "evicted": gone, "entries": stats.entries})
    else:
        click.echo(
            f"added {added:,}, evicted {gone:,}; {stats.entries:,} entries within {stats.budget}"
        )


@click.command()
@store_file
@click.option("--vector", help="The query as a JSON list.")
@click.option("--from", "source", type=click.Path(path_type=Path), help="The query as a .npy file.")
@click.option("-k", default=10, show_default=True, help="How many hits.")
@click.option("--where", help='Filter as JSON, such as {"kind": "fact", "year": {"$gte": 2020}}.')
@click.option(
    "--touch/--no-touch",
    default=True,
    show_default=True,
    help="Whether the search counts as access.",
)
@click.option("--archived", is_flag=True, help="Look among the restorable victims as well.")
@namespace_option
@json_option
def search(
    file: Path, vector: str | None, source: Path | None, k: int, where: str | None, touch: bool, archived: bool,
    namespace: str, as_json: bool,
) -> None:  # fmt: skip
    """The entries nearest to a query, by cosine.

    \b
    Example:
      memsift search agent.memsift --from query.npy -k 5 --where '{"kind": "fact"}'
    """
    query = _query(vector, source)
    condition = None if where is None else _json(where, "--where")
    with open_store(file, namespace) as store:
        hits = store.search(query, k, where=condition, touch=touch, include_archived=archived)
        rows = [{**hit._asdict(), "archived": archived and hit.id not in store} for hit in hits]
    if as_json:
        print_json({"hits": rows})
        return
    from memsift.cli.tables import table

    found = table("id", "score", "metadata", right=2)
    for row in rows:
        note = json.dumps(row["metadata"], ensure_ascii=False) if row["metadata"] else ""
        found.add_row(
            f"{row['id']}{' (archived)' if row['archived'] else ''}", f"{row['score']:.4f}", note
        )
    show(found if rows else "nothing found")


@click.command()
@store_file
@click.option("--probe", is_flag=True, help="Measure the index's recall against an exact search.")
@click.option(
    "--vectors",
    type=click.Choice(["float32", "tiered", "float16", "int8"]),
    default="float32",
    show_default=True,
    help="How they would be held: what RAM it takes then.",
)
@namespace_option
@json_option
def stats(file: Path, probe: bool, vectors: str, namespace: str, as_json: bool) -> None:
    """What a store holds, how full it is, what answers searches, what it forgot, and the RAM it takes.

    \b
    Example:
      memsift stats agent.memsift --probe --json
      memsift stats agent.memsift --vectors int8
    """
    with open_store(file, namespace, vectors=vectors) as store:
        if probe:
            store.wait_for_index()
        found, resting, records = store.stats(probe=probe), len(store.archived()), len(store.audit)
    if as_json:
        print_json({**found.to_dict(), "archived": resting, "audit_records": records})
        return
    from memsift.cli.tables import table

    rows = table("", "now", "budget", right=2)
    for unit, used in found.size._asdict().items():
        limit = found.budget.limits.get(unit)
        rows.add_row(
            unit,
            f"{used:,}",
            "no limit" if limit is None else f"{limit:,}  ({used / limit:.0%})" if limit else "0",
        )
    for name in (
        "pinned",
        "added",
        "evicted",
        "deleted",
        "searches",
        "compactions",
        "forced_compactions",
        "tick",
    ):
        rows.add_row(name.replace("_", " "), f"{getattr(found, name):,}", "")
    rows.add_row("archived", f"{resting:,}", "")
    rows.add_row("audit records", f"{records:,}", "")
    for part, size in found.bytes.items():
        if size:
            rows.add_row(f"RAM: {part}", f"{size:,} B", "")
    rows.add_row("RAM in all", f"{found.allocated:,} B", "")
    if found.cold_bytes:
        rows.add_row("disk: cold vectors", f"{found.cold_bytes:,} B", "")
    show(rows)
    click.echo(f"policy {found.policy}; vectors held as {found.vectors}")
    click.echo(f"index {found.index}")


@click.command()
@store_file
@json_option
def namespaces(file: Path, as_json: bool) -> None:
    """The memories of a file.

    \b
    Example:
      memsift namespaces agent.memsift
    """
    from memsift.storage.namespaces import names_in

    found = names_in(file)
    if as_json:
        print_json({"namespaces": [{"name": n, "dim": d, "entries": e} for n, d, e in found]})
        return
    from memsift.cli.tables import table

    rows = table("namespace", "dim", "entries", right=1)
    for name, dim, entries in found:
        rows.add_row(name, f"{dim}", f"{entries:,}")
    show(rows)


def _query(vector: str | None, source: Path | None) -> Any:
    if (vector is None) == (source is None):
        raise InvalidValue("a query must be given by --vector or by --from; got both or neither")
    if vector is not None:
        return _json(vector, "--vector")
    import numpy as np

    try:
        return np.load(source, allow_pickle=False)  # type: ignore[arg-type]
    except (OSError, ValueError, EOFError) as error:
        raise InvalidValue(f"--from must be a readable .npy; {error}") from None


def _json(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"{name} must be JSON; {error}") from None
