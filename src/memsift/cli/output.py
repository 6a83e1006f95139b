"""How commands print: tables for people, JSON for programs, progress on a terminal's stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from memsift.errors import InvalidType, InvalidValue, MemsiftError

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


class Commands(click.Group):
    """A group whose commands turn the library's errors into one line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (InvalidValue, InvalidType) as error:
            raise click.UsageError(str(error)) from error
        except MemsiftError as error:
            raise click.ClickException(str(error)) from error


def print_json(data: Any) -> None:
    """Strict JSON on stdout."""
    click.echo(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False))


def show(renderable: Any) -> None:
    """Print a rich table or text to stdout, at most 100 columns wide."""
    from rich.console import Console

    console = Console(highlight=False)
    # Piped output has no width of its own; tables are made for 100 columns.
    console.width = min(console.width, 100) if console.is_terminal else 100
    console.print(renderable)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """A bar on stderr if it is a terminal. The yielded call names the step that begins."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[step]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, step="")
        started = [False]

        def advance(step: str) -> None:
            bar.update(task, advance=1 if started[0] else 0, step=step)
            started[0] = True

        yield advance


@contextmanager
def progress_rows(what: str, rows: int | None) -> Iterator[Callable[[int], None]]:
    """A bar over rows on stderr if it is a terminal; the yielded call says how many more are done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=rows)
        yield lambda count: bar.update(task, advance=count)
