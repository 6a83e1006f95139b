"""`memsift simulate`: a store's own past, lived again under other policies and budgets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from memsift.cli.bench import BUDGETS, POLICIES, _budgets, _writer
from memsift.cli.options import namespace_option, out_option, seed_option, watermark_option
from memsift.cli.output import json_option, print_json, progress, show
from memsift.errors import InvalidValue

if TYPE_CHECKING:
    from memsift.accesslog import AccessLog
    from memsift.evaluation.trace import Trace
    from memsift.policies import ScoredPolicy

store_or_log = click.argument(
    "file", type=click.Path(path_type=Path, dir_okay=False), required=False
)
log_option = click.option(
    "--log",
    "log_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A saved log instead of a store.",
)


class Past(NamedTuple):
    """A log as a trace, and what the store that it came from keeps to, if that is known."""

    trace: Trace
    log: AccessLog
    policy: ScoredPolicy | None
    entries: int | None


def past_of(file: Path | None, log_path: Path | None, namespace: str) -> Past:
    """The past in a store's file, or in a saved log."""
    from memsift.accesslog import QUERY, AccessLog
    from memsift.evaluation.readers import read_log
    from memsift.policies import ScoredPolicy, parse, to_text
    from memsift.storage.logbook import read_log_of

    if (file is None) == (log_path is None):
        raise InvalidValue(
            f"FILE or --log must be given, one of them; got {'neither' if file is None else 'both'}"
        )
    if log_path is not None:
        log = AccessLog.load(log_path)
        return Past(read_log(log, log_path.name.removesuffix(".npz")), log, None, None)
    assert file is not None
    log, config = read_log_of(file, namespace)
    if not log.count(QUERY):
        raise InvalidValue(
            f"{file.name} must hold an access log to be replayed; it has recorded no query "
            "(in Python, `store.record()` begins a recording)"
        )
    policy, fresh = config.policy, None
    if isinstance(policy, ScoredPolicy):
        # As its settings say: what it has learned meanwhile, it would have learned from this very log.
        fresh = parse(to_text(policy))
    return Past(read_log(log, file.stem), log, fresh, config.budget.limits.get("entries"))


def note_of(past: Past) -> str:
    """What a reader must know of the log: how much it holds, and by what it is judged."""
    from memsift.accesslog import NEED, USE

    stream = past.trace.streams[0]
    labelled = int((stream.need.indptr[1:] > stream.need.indptr[:-1]).sum())
    needs = "the exact ten nearest of all that had come"
    if past.log.count(USE):
        needs = "what was said to have helped"
    if past.log.count(NEED):
        needs = "the needs that the log was given"
    return (
        f"{len(stream):,} memories, {len(stream.queries):,} queries, {labelled:,} of them with a need: {needs}. "
        "Every search is replayed for ten hits and touches five, as in `memsift bench replay`."
    )


@click.command()
@store_or_log
@log_option
@namespace_option
@click.option("--policies", default=POLICIES, show_default=True, help="Separated by commas.")
@click.option(
    "--budgets",
    help=f"Shares of the log's memories, in (0, 1]; {BUDGETS} and the store's own by default.",
)
@click.option("--current", help="The policy in use; that of FILE by default.")
@watermark_option
@seed_option
@out_option
@json_option
def simulate(
    file: Path | None,
    log_path: Path | None,
    namespace: str,
    policies: str,
    budgets: str | None,
    current: str | None,
    watermark: float,
    seeds: tuple[int, ...],
    out: Path | None,
    as_json: bool,
) -> None:
    """What if: replay the access log of a store under other policies and budgets, and say what to choose.

    \b
    Example:
      memsift demo
      memsift simulate --log memsift-demo.log.npz
      memsift simulate agent.memsift --policies lru,coherence:gamma=0.5 --budgets 50%,25% --json
    """
    from memsift.evaluation import report
    from memsift.evaluation.advice import advise
    from memsift.evaluation.replay import grid, steps
    from memsift.policies import parse, parse_list, to_text

    chosen, writer = parse_list(policies), _writer(out)
    used = None if current is None else parse(current)
    shares = _budgets(budgets or BUDGETS)
    past = past_of(file, log_path, namespace)
    used = past.policy if used is None else used
    label = None if used is None else to_text(used)
    if used is not None and label not in [to_text(policy) for policy in chosen]:
        chosen.append(used)
    if budgets is None and past.entries is not None and past.entries < len(past.trace):
        shares = sorted({*shares, past.entries / len(past.trace)}, reverse=True)
    with progress("replaying", steps(chosen, shares, seeds)) as tell:
        cells = list(
            grid(
                past.trace,
                chosen,
                shares,
                variant="log",
                watermark=watermark,
                seeds=seeds,
                progress=tell,
            )
        )
    advice = advise(cells, label)
    if as_json:
        print_json(
            report.to_json(cells)
            | {"log": note_of(past), "current": label, "advice": [one.to_dict() for one in advice]}
        )
    else:
        show(report.results_table(cells))
        click.echo(f"\n{click.wrap_text(note_of(past), 98)}\n")
        click.echo(
            "\n\n".join(map(str, advice))
            or "No query that counts needs anything: nothing to advise."
        )
    if writer is not None:
        writer(cells)
        click.echo(f"wrote {out}", err=as_json)
