"""Options that several commands share, and how a command opens its store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memsift.errors import InvalidValue

if TYPE_CHECKING:
    from memsift.budget import Budget
    from memsift.durable import DurableStore

F = TypeVar("F", bound=Callable[..., Any])

store_file = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
namespace_option = click.option(
    "--namespace", "-n", default="default", show_default=True, help="Which memory of the file."
)

watermark_option = click.option(
    "--watermark", default=0.97, show_default=True, help="A full store is compacted to this share."
)
seed_option = click.option(
    "--seed",
    "seeds",
    multiple=True,
    type=int,
    default=[0],
    show_default=True,
    help="For random; repeatable.",
)
out_option = click.option(
    "--out", type=click.Path(path_type=Path), help="Also write .html, .png, .csv or .json."
)


def budget_options(function: F) -> F:
    """`--budget`, `--budget-bytes`, `--budget-cost`."""
    for name, words in (("cost", "tokens"), ("bytes", "bytes"), ("entries", "entries")):
        flags = ("--budget",) if name == "entries" else (f"--budget-{name}",)
        function = click.option(
            *flags, f"budget_{name}", type=int, help=f"Hold at most this many {words}."
        )(function)
    return function


def budget_of(entries: int | None, bytes_: int | None, cost: int | None) -> Budget | None:
    """A budget from the options, None if none was given."""
    from memsift.budget import Budget

    if entries is None and bytes_ is None and cost is None:
        return None
    return Budget(entries, bytes_, cost)


def open_store(file: Path, namespace: str, **settings: Any) -> DurableStore:
    """The store of a file that exists; a mistyped name must not make a new one."""
    from memsift.store import MemoryStore

    return MemoryStore.open(file, namespace=namespace, **settings)


def target_of(text: str | None) -> int | float | None:
    """A target as people write it, or none."""
    return None if text is None else size_of(text, "--target")


def size_of(text: str, option: str) -> int | float:
    """What shall stay, as people write it: `8000` entries, `0.5` or `50%` of what is held."""
    try:
        if text.endswith("%"):
            return float(text[:-1]) / 100
        return float(text) if "." in text else int(text)
    except ValueError:
        raise InvalidValue(
            f"{option} must be a number of entries, or a share like 0.5 or 50%; got {text[:40]!r}"
        ) from None


def policy_of(text: str | None) -> Any:
    from memsift.policies import parse

    return None if text is None else parse(text)
