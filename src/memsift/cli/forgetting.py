"""Commands that forget, bring back and remove: plan, compact, restore, erase."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memsift.cli.options import namespace_option, open_store, policy_of, store_file, target_of
from memsift.cli.output import json_option, print_json
from memsift.errors import InvalidValue

if TYPE_CHECKING:
    from memsift.plan import Plan

target_option = click.option(
    "--target", help="What shall remain: 8000 entries, 0.5 or 50%; the watermark by default."
)
policy_option = click.option(
    "--policy", help="Such as lru or coherence:gamma=0.5; the store's own by default."
)


@click.command()
@store_file
@target_option
@policy_option
@click.option(
    "--explain",
    "asked",
    multiple=True,
    type=int,
    metavar="ID",
    help="Why this entry stays or leaves; repeatable.",
)
@click.option(
    "--limit", default=20, show_default=True, help="How many victims' reasons in the JSON."
)
@namespace_option
@json_option
def plan(
    file: Path,
    target: str | None,
    policy: str | None,
    asked: tuple[int, ...],
    limit: int,
    namespace: str,
    as_json: bool,
) -> None:
    """What would be forgotten, and why. Changes nothing.

    \b
    Example:
      memsift plan agent.memsift --target 50% --explain 17
    """
    with open_store(file, namespace) as store:
        made = store.plan(target_of(target), policy_of(policy), force=True)
        reasons = [made.explain(id_) for id_ in asked]
        if as_json:
            print_json({**made.to_dict(limit), "explained": reasons})
            return
        click.echo(str(made))
        for why in reasons:
            click.echo(f"\nid {why['id']}: {why['verdict']}")
            for name, part in why.get("signals", {}).items():
                click.echo(
                    f"  {name:<12} {part['value']:.4f} × {part['weight']:g} = {part['contribution']:.4f}"
                )
            if "score" in why:
                click.echo(
                    f"  score {why['score']:.4f}, rank {why['rank']} of {why['of']}, {why['margin']:+.4f} from the cut"
                )


@click.command()
@store_file
@target_option
@policy_option
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@click.option("--force", is_flag=True, help="Allow more than half of the store to leave.")
@namespace_option
@json_option
def compact(
    file: Path,
    target: str | None,
    policy: str | None,
    dry_run: bool,
    force: bool,
    namespace: str,
    as_json: bool,
) -> None:
    """Forget what a policy values least. Victims rest in the archive and can be restored.

    \b
    Example:
      memsift compact agent.memsift --target 0.5 --dry-run
      memsift compact agent.memsift --target 0.5
    """
    with open_store(file, namespace) as store:
        made = store.plan(target_of(target), policy_of(policy), force=force)
        if dry_run:
            print_json(made.to_dict(20)) if as_json else click.echo(str(made))
            return
        _allow(made, force)
        done = store.apply(made)
        if as_json:
            print_json(
                {
                    "evicted": len(done.dropped),
                    "survivors": done.after.entries,
                    "policy": done.policy,
                    "spared": len(done.spared),
                    "audit_head": done.audit_head,
                    "dropped": done.dropped.tolist(),
                }
            )
        else:
            click.echo(f"{done}\naudit head {done.audit_head}")


@click.command()
@store_file
@click.argument("ids", nargs=-1, type=int)
@click.option("--list", "listing", is_flag=True, help="Only print what could be restored.")
@namespace_option
@json_option
def restore(file: Path, ids: tuple[int, ...], listing: bool, namespace: str, as_json: bool) -> None:
    """Bring entries back from the archive, with their counters.

    \b
    Example:
      memsift restore agent.memsift --list
      memsift restore agent.memsift 17 18
    """
    with open_store(file, namespace) as store:
        if listing:
            found = store.archived().tolist()
            print_json({"archived": found}) if as_json else click.echo(
                "\n".join(map(str, found)) or "nothing is archived"
            )
            return
        _some(ids)
        done = store.restore(ids)
        left = [] if done is None else done.dropped.tolist()
        if as_json:
            print_json({"restored": sorted(set(ids)), "evicted": left, "entries": len(store)})
        else:
            room = f"; {len(left):,} left to make room" if left else ""
            click.echo(f"restored {len(set(ids)):,}, {len(store):,} entries{room}")


@click.command()
@store_file
@click.argument("ids", nargs=-1, type=int)
@click.option("--yes", is_flag=True, help="Do not ask.")
@namespace_option
@json_option
def erase(file: Path, ids: tuple[int, ...], yes: bool, namespace: str, as_json: bool) -> None:
    """Remove entries for good, from every place that can be reached. There is no way back.

    \b
    Example:
      memsift erase agent.memsift 17 --yes
    """
    _some(ids)
    if not yes:
        click.confirm(f"Erase {len(set(ids)):,} entries of {file} for good?", abort=True, err=True)
    with open_store(file, namespace) as store:
        receipt = store.erase(ids)
    if as_json:
        answer: dict[str, Any] = {"erased": receipt.ids.tolist(), "complete": receipt.complete}
        print_json({**answer, "places": receipt.places, "audit_head": receipt.audit_head})
    else:
        click.echo(str(receipt))


def _allow(made: Plan, force: bool) -> None:
    if made.forced and not force:
        raise InvalidValue(
            f"a compaction may evict at most half of the store without --force; this one would evict "
            f"{len(made):,} of {made.before.entries:,}"
        )


def _some(ids: tuple[int, ...]) -> None:
    if not ids:
        raise InvalidValue("ids must name at least one entry; got none")
