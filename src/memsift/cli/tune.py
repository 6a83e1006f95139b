"""`memsift tune`: the weights that a store's own past would have liked, and whether to believe it."""

from __future__ import annotations

from pathlib import Path

import click

from memsift.cli.bench import _budgets
from memsift.cli.options import namespace_option, watermark_option
from memsift.cli.output import json_option, print_json, progress
from memsift.cli.simulate import log_option, note_of, past_of, store_or_log

POLICY = "coherence"
BUDGET = "0.25"


@click.command()
@store_or_log
@log_option
@namespace_option
@click.option(
    "--policy",
    help=f"What to fit, such as 0.5*recency+0.5*coherence; FILE's own by default, else {POLICY}.",
)
@click.option(
    "--parameters", help="Which of its numbers, separated by commas; its weights by default."
)
@click.option(
    "--budgets",
    help=f"Shares of the log's memories over which recall is averaged; the store's own by default, else {BUDGET}.",
)
@watermark_option
@click.option("--trials", default=40, show_default=True, help="Policies to try in each fold.")
@json_option
def tune(
    file: Path | None,
    log_path: Path | None,
    namespace: str,
    policy: str | None,
    parameters: str | None,
    budgets: str | None,
    watermark: float,
    trials: int,
    as_json: bool,
) -> None:
    """Fit the weights of a policy to an access log, and say whether the gain is real.

    They are fitted to the earlier queries and checked on later ones, twice. Nothing is changed: the policy is printed.

    \b
    Example:
      memsift tune --log memsift-demo.log.npz --budgets 25%
      memsift tune agent.memsift --policy coherence --parameters alpha,beta,gamma,window
    """
    from memsift.evaluation import tuning
    from memsift.policies import parse

    wanted = None if policy is None else parse(policy)
    shares = None if budgets is None else _budgets(budgets)
    names = (
        None
        if parameters is None
        else [name.strip() for name in parameters.split(",") if name.strip()]
    )
    past = past_of(file, log_path, namespace)
    if shares is None:
        bounded = past.entries is not None and past.entries < len(past.trace)
        shares = [past.entries / len(past.trace)] if bounded and past.entries else _budgets(BUDGET)
    start = wanted or past.policy or parse(POLICY)
    with progress("fitting", 2 * trials) as tell:
        found = tuning.tune(
            past.trace, start, shares, names, watermark=watermark, trials=trials, progress=tell
        )
    if as_json:
        print_json(found.to_dict() | {"budgets": shares, "log": note_of(past)})
        return
    click.echo(f"{click.wrap_text(note_of(past), 98)}\n")
    told = found.to_dict()
    at = " and ".join(f"{100 * share:.4g} %" for share in shares)
    click.echo(f"from           {told['start']}, at {at}")
    for number, text in enumerate(told["folds"], start=1):
        click.echo(f"fit, fold {number}    {text}")
    click.echo(f"where fitted   {tuning.gain(found.train, found.measured)}")
    click.echo(
        f"held out       {tuning.gain(found.held, found.measured)}: "
        f"{100 * found.before:.1f} % to {100 * found.after:.1f} % of what is needed"
    )
    click.echo(f"\n{found}")
