"""`memsift bench speed`: how fast, beside bare numpy and the peers that pip brings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from memsift.cli.output import json_option, print_json, progress, show
from memsift.errors import InvalidValue

PICTURES = (".png", ".svg")


@click.command()
@click.option(
    "--sizes",
    help="For searches and compactions, as 20000x384, with commas.  "
    "[default: 2000x64,2000x384,20000x384,100000x384]",
)
@click.option("--million", is_flag=True, help="1,000,000 x 384 as well.")
@click.option(
    "--peers",
    default="all",
    show_default=True,
    help="all, none, or names, with commas: usearch, faiss, sqlite-vec, hnswlib, chroma.",
)
@click.option(
    "--only",
    help="Parts, with commas: search, compact, online, add, background, file, memory, growth.",
)
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(1, 100))
@click.option("--out", type=click.Path(path_type=Path), help="Also write the figures as .json.")
@click.option("--plot", type=click.Path(path_type=Path), help="Also draw them: .png or .svg.")
@json_option
def speed(
    sizes: str | None,
    million: bool,
    peers: str,
    only: str | None,
    repeats: int,
    out: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Our operations beside bare numpy and the peers of `pip install 'memsift[bench]'`.

    All in one process and in turn, one thread everywhere; times are medians of CPU time. On an idle machine: two to
    three minutes without peers, about ten with all of them; --million takes as long again and 10 GB of memory; with
    --peers none --only search --sizes 20000x384 it is done in seconds.

    \b
    Example:
      memsift bench speed --json
      memsift bench speed --peers faiss,usearch --only search --plot speed.png
      memsift bench speed --million --out speed.json
    """
    from memsift.evaluation.report import speed_tables
    from memsift.evaluation.report.files import write_whole
    from memsift.evaluation.speed.child import (
        expected_steps,
        measure,
        peers_of,
        sections_of,
        sizes_of,
    )
    from memsift.evaluation.speed.run import MILLION, SIZES

    _may_be_written(out, "--out", (".json",))
    _may_be_written(plot, "--plot", PICTURES)
    chosen = list(SIZES) if sizes is None else sizes_of(sizes)
    if million and MILLION not in chosen:
        chosen.append(MILLION)
    parts = None if only is None else sections_of(only)
    against = peers_of(peers)
    with progress("measuring", expected_steps(chosen, parts)) as tell:
        data = measure(chosen, repeats, against, parts, tell)
    if out is not None:
        write_whole(out, f"{json.dumps(data, indent=1, ensure_ascii=False)}\n".encode())
    if plot is not None:
        _draw(data, plot)
    if as_json:
        print_json(data)
        return
    for table in speed_tables(data):
        show(table)
    for path in filter(None, (out, plot)):
        click.echo(f"written: {path}")


def _draw(data: dict[str, Any], path: Path) -> None:
    from memsift.evaluation.report import speed_png, speed_svg
    from memsift.evaluation.report.files import write_whole

    if path.suffix.lower() == ".png":
        speed_png(data, path)
    else:
        write_whole(path, speed_svg(data).encode())


def _may_be_written(path: Path | None, name: str, endings: tuple[str, ...]) -> None:
    """Said before the long work begins."""
    if path is None:
        return
    if path.suffix.lower() not in endings:
        raise InvalidValue(f"{name} must end in {' or '.join(endings)}; got {path.name[-40:]!r}")
    if not path.parent.is_dir():
        raise InvalidValue(
            f"{name} must lie in a folder that exists; got {str(path.parent)[-60:]!r}"
        )
