"""`memsift bench`: the figures that this project stands by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memsift import checks
from memsift.cli.options import out_option, seed_option, watermark_option
from memsift.cli.output import Commands, json_option, print_json, progress, show
from memsift.cli.speed import speed
from memsift.errors import InvalidValue

if TYPE_CHECKING:
    from memsift.evaluation.cell import Cell
    from memsift.evaluation.trace import Trace

POLICIES = "random,fifo,lru,lfu,coherence,adaptive"
BUDGETS = "0.5,0.25,0.1"


@click.group(cls=Commands)
def bench() -> None:
    """Measure memsift: against the reference, on real streams, against bare numpy."""


@bench.command()
@json_option
def reference(as_json: bool) -> None:
    """Agreement with the reference implementation, on its own data.

    \b
    Example:
      memsift bench reference --json
    """
    from memsift.evaluation.parity import NOTE, parity
    from memsift.evaluation.tables import parity_table

    rows = parity()
    if as_json:
        print_json({"rows": [row.to_dict() for row in rows], "unit": "per cent", "note": NOTE})
        return
    show(parity_table(rows))
    click.echo(click.wrap_text(NOTE, 78))


@bench.command()
@click.option(
    "--workload",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A .npz workload; repeatable.",
)
@click.option("--git", "git_path", type=click.Path(path_type=Path), help="Any git repository.")
@click.option("--manual", is_flag=True, help="Python's own manual (the default).")
@click.option(
    "--suite",
    "suite_name",
    type=click.Choice(["quick", "full"]),
    help="Every workload at hand, every variant of it, every policy: minutes.",
)
@click.option(
    "--workloads",
    "folder",
    type=click.Path(path_type=Path),
    help="For --suite: a folder with .npz workloads.",
)
@click.option(
    "--variant",
    help="How a workload is driven: end, end-traffic, interleaved, used, log; "
    "with -costless behind it the store is told no costs.",
)
@click.option(
    "--policies", help=f"Separated by commas.  [default: {POLICIES}; of a suite: its own]"
)
@click.option(
    "--budgets", help="Shares of the stream, in (0, 1].  [default: 0.5,0.25,0.1; quick: 0.25]"
)
@watermark_option
@seed_option
@out_option
@json_option
def replay(
    paths: tuple[Path, ...],
    git_path: Path | None,
    manual: bool,
    suite_name: str | None,
    folder: Path | None,
    variant: str | None,
    policies: str | None,
    budgets: str | None,
    watermark: float,
    seeds: tuple[int, ...],
    out: Path | None,
    as_json: bool,
) -> None:
    """Let real stores live through real streams, and count what they still find.

    \b
    Example:
      memsift bench replay --manual
      memsift bench replay --git . --policies lru,coherence:gamma=0.5 --budgets 0.5,0.1 --out report.html
      memsift bench replay --workload locomo.npz --variant end-traffic --watermark 0.8 --json
      memsift bench replay --suite full --workloads ../shared/workloads --out suite.json
    """
    from memsift.evaluation import report

    writer = _writer(out)
    if suite_name is None:
        if folder is not None:
            raise InvalidValue(
                "--workloads goes with --suite; a single file is given by --workload"
            )
        chosen = _replayed(paths, git_path, manual, variant, policies, budgets, watermark, seeds)
    else:
        if git_path is not None or manual or variant is not None:
            raise InvalidValue(
                "--suite has workloads and variants of its own: it takes no --git, --manual, --variant"
            )
        chosen = _suite(suite_name, folder, paths, policies, budgets, watermark)
    cells = list(chosen)
    if as_json:
        print_json(report.to_json(cells))
    else:
        show(report.results_table(cells))
    if writer is not None:
        writer(cells)
        click.echo(f"wrote {out}", err=as_json)


def _replayed(
    paths: tuple[Path, ...],
    git_path: Path | None,
    manual: bool,
    variant: str | None,
    policies: str | None,
    budgets: str | None,
    watermark: float,
    seeds: tuple[int, ...],
) -> Iterator[Cell]:
    """The cells of the traces that were named."""
    from memsift.evaluation.drive import COSTLESS
    from memsift.evaluation.readers import read_git, read_manual, read_npz
    from memsift.evaluation.replay import grid, steps
    from memsift.policies import parse_list

    chosen, shares = parse_list(policies or POLICIES), _budgets(budgets or BUDGETS)
    traces: list[tuple[Trace, str]] = []
    for path in paths:
        trace = read_npz(path, variant and variant.removesuffix(COSTLESS))
        traces.append((trace, variant or ("log" if trace.need == "coverage" else "end-traffic")))
    if git_path is not None:
        traces.append((read_git(git_path), variant or "log"))
    if manual or not traces:
        traces.append((read_manual(), variant or "log"))
    with progress("replaying", steps(chosen, shares, seeds) * len(traces)) as tell:
        for trace, how in traces:
            about = {"variant": how, "watermark": watermark, "seeds": seeds}
            yield from grid(trace, chosen, shares, **about, progress=tell)  # type: ignore[arg-type]


def _suite(
    name: str,
    folder: Path | None,
    paths: tuple[Path, ...],
    policies: str | None,
    budgets: str | None,
    watermark: float,
) -> Iterator[Cell]:
    """The cells of a suite; what it lacks is said first."""
    from memsift.evaluation.suite import suite
    from memsift.policies import parse_list, to_text

    texts = None if policies is None else [to_text(p) for p in parse_list(policies)]
    chosen = suite(name, folder, paths, texts, None if budgets is None else _budgets(budgets))
    for words in chosen.missing:
        click.echo(f"missing: {words}", err=True)
    with progress("replaying", chosen.steps) as tell:
        yield from chosen.run(watermark, tell)


bench.add_command(speed)


def _budgets(text: str) -> list[float]:
    """`0.5,0.25` or `50%,25%` as shares."""
    shares = []
    for piece in filter(None, (p.strip() for p in text.split(","))):
        try:
            share = float(piece[:-1]) / 100 if piece.endswith("%") else float(piece)
        except ValueError:
            raise InvalidValue(
                f"budgets must be shares like 0.5 or 50%; got {piece[:40]!r}"
            ) from None
        shares.append(checks.fraction(share, "budgets", zero=False))
    if not shares:
        raise InvalidValue("budgets must name at least one share like 0.5; got none")
    return shares


def _writer(out: Path | None) -> Any:
    """What writes a file of this ending; checked before the long work begins."""
    from memsift.evaluation import report

    writers = {
        ".html": report.write_html,
        ".png": report.plot_png,
        ".csv": report.to_csv,
        ".json": report.write_json,
    }
    if out is None:
        return None
    if out.suffix.lower() not in writers:
        raise InvalidValue(f"--out must end in {', '.join(writers)}; got {out.name[-40:]!r}")
    if not out.parent.is_dir():
        raise InvalidValue(f"--out must lie in a folder that exists; got {str(out.parent)[-60:]!r}")
    return lambda cells: writers[out.suffix.lower()](cells, out)
