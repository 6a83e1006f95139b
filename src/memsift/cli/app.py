"""`memsift` and its commands, each loaded when it is called."""

from __future__ import annotations

from importlib import import_module

import click

import memsift
from memsift.cli.output import Commands

# Command name -> the module and function that holds it, so that `--help` loads none of them.
COMMANDS = {
    "demo": ("memsift.cli.demo", "demo", "What this is, on input that every Python has."),
    "init": ("memsift.cli.holding", "init", "Make a store."),
    "add": ("memsift.cli.holding", "add", "Add vectors from .npy, .npz or JSON lines."),
    "search": ("memsift.cli.holding", "search", "The entries nearest to a query."),
    "stats": ("memsift.cli.holding", "stats", "What a store holds, and what it forgot."),
    "plan": ("memsift.cli.forgetting", "plan", "What would be forgotten, and why."),
    "compact": ("memsift.cli.forgetting", "compact", "Forget; victims can be restored."),
    "restore": ("memsift.cli.forgetting", "restore", "Bring victims back."),
    "erase": ("memsift.cli.forgetting", "erase", "Remove entries for good."),
    "audit": ("memsift.cli.auditing", "audit", "The chain of decisions: verify, head, export."),
    "verify": ("memsift.cli.auditing", "verify", "Check a store from end to end."),
    "export": ("memsift.cli.exchange", "export", "Write a store as .rvf."),
    "import": ("memsift.cli.exchange", "import_", "Read a .rvf into a new store."),
    "namespaces": ("memsift.cli.holding", "namespaces", "The memories of a file."),
    "sift": ("memsift.cli.sift", "sift", "Forget in a vector database that you have."),
    "simulate": ("memsift.cli.simulate", "simulate", "Replay a store's own past: what if?"),
    "tune": ("memsift.cli.tune", "tune", "Fit weights to a store's past, with a check."),
    "bench": ("memsift.cli.bench", "bench", "Measure: reference, replay, speed."),
}


class Lazy(Commands):
    """Looks a command up when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, _, words) in COMMANDS.items()])


@click.command(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(memsift.__version__, prog_name="memsift")
def cli() -> None:
    """A vector memory with a budget that holds, and that forgets by measured usefulness.

    \b
    Example:
      memsift demo
      memsift bench replay --git . --policies random,lru,coherence --budgets 0.5,0.1
    """
