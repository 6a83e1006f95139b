"""`memsift demo`: what this is, on input that every Python has."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from memsift.cli.output import json_option, print_json, progress, show

BUDGETS = (0.5, 0.25, 0.1)


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("memsift-report.html"),
    show_default=True,
    help="Where the report goes.",
)
@click.option(
    "--log",
    "log_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the access log goes; memsift-demo.log.npz beside the report by default.",
)
@json_option
def demo(out: Path, log_path: Path | None, as_json: bool) -> None:
    """Parity with the reference, a replay of Python's manual, a plan explained, a report with pictures.

    \b
    Example:
      memsift demo --out /tmp/report.html
    """
    from memsift.evaluation import report
    from memsift.evaluation.parity import NOTE, parity
    from memsift.evaluation.readers import read_manual, record
    from memsift.evaluation.replay import grid, steps
    from memsift.evaluation.story import explained, plan_at
    from memsift.evaluation.tables import parity_table
    from memsift.policies import CoherencePolicy, parse_list

    rows = parity()
    if not as_json:
        show(parity_table(rows))
        click.echo(click.wrap_text(NOTE, 78) + "\n")
    policies = parse_list("random,fifo,lru,lfu,coherence,adaptive")
    trace = read_manual()
    stream = trace.streams[0]
    if not as_json:
        click.echo(
            f"Replay: an agent reads Python's manual ({len(trace):,} passages) and looks things up while it works\n"
            f"through the standard library ({len(stream.queries):,} questions). What does each policy still find?\n"
        )
    log_path = out.with_name("memsift-demo.log.npz") if log_path is None else log_path
    with progress("recording", 1) as tell:
        tell("a store that keeps everything")
        record(stream, score_from=trace.score_from).save(log_path)
    with progress("replaying", steps(policies, BUDGETS)) as tell:
        cells = list(grid(trace, policies, BUDGETS, variant="log", progress=tell))
    plan = plan_at(stream, 0.6, CoherencePolicy())
    worst = [int(plan.view.ids[row]) for row in plan.worst()]
    words = explained(plan, [worst[0], worst[-1]], stream.titles)
    story = [
        ("A plan, half-way through the manual", str(plan)),
        ("Its farthest and its closest victim", words),
    ]
    report.write_html(cells, out, title="memsift: Python's manual under a budget", plans=story)
    if as_json:
        print_json(
            {
                "parity": {
                    "rows": [row.to_dict() for row in rows],
                    "unit": "per cent",
                    "note": NOTE,
                },
                "replay": report.to_json(cells),
                "plan": plan.to_dict(limit=2),
                "report": str(out),
                "log": str(log_path),
            }
        )
        return
    show(report.results_table(cells))
    for heading, text in story:
        click.echo(f"\n{heading}\n\n{text}")
    click.echo(f"\nThe report with its pictures: {out.resolve()}")
    click.echo(
        "What if it had been your store? Its access log (vectors and ids, no text), replayed:\n"
        f"  memsift simulate --log {shlex.quote(str(log_path))}\n"
        f"  memsift tune --log {shlex.quote(str(log_path))}"
    )
