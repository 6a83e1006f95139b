"""The suite: every workload at hand, driven in every way that it knows, under every policy that is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module, resources
from pathlib import Path

from memsift.errors import InvalidValue, MemsiftError
from memsift.evaluation.cell import Cell
from memsift.evaluation.drive import COSTLESS
from memsift.evaluation.readers import read_manual, read_npz, variants_of
from memsift.evaluation.replay import Lives, grid, steps
from memsift.evaluation.trace import Trace
from memsift.policies import CompactionPolicy, parse, to_text

BASELINES = ("lru", "lfu", "coherence", "fifo", "oldest", "longest", "shortest", "random")
OTHERS = ("ebbinghaus", "actr", "generative_agents", "gdsf")
OURS = ("adaptive",)
ON_LOGS = ("adaptive:goal=replay", "adaptive:goal=evidence")
"""The ends of the gate, shown where needs and neighbours are both labelled."""

ON_SMALL = ("graph",)
SMALL, FEW = 1_000, ("end", "interleaved")
"""Memories in a trace's longest stream, and variants, up to which the slow policies are replayed."""

EXPECTED = ("locomo", "taubench", "intercode", "beam")
"""Workloads that the project's own figures are made of."""

_ENDS = ("end", "end-traffic")
_BETWEEN = ("interleaved", "used")


@dataclass(frozen=True)
class Size:
    """How much of everything a suite runs."""

    budgets: tuple[float, ...]
    seeds: tuple[int, ...]
    synthetic_seeds: tuple[int, ...]
    every_variant: bool


SIZES = {
    "quick": Size((0.25,), (0,), (0, 1), every_variant=False),
    "full": Size((0.5, 0.25, 0.1), (0, 1, 2, 3, 4), (0, 1, 2, 3, 4), every_variant=True),
}


@dataclass(frozen=True)
class Item:
    """A trace and the ways in which it is driven; the queries of all of them come at the same times.

    Parameters
    ----------
    load : callable
        Reads the trace when its turn comes.
    seeds : tuple of int
        Seeds of `random`; a trace whose streams are seeds themselves needs only one.
    log : bool
        An agent log, in which needs and neighbours are both labelled.
    """

    name: str
    variants: tuple[str, ...]
    load: Callable[[], Trace] = field(repr=False)
    seeds: tuple[int, ...]
    log: bool = False


@dataclass(frozen=True)
class Suite:
    """What will be replayed, and what is missing, in words."""

    size: Size
    items: tuple[Item, ...]
    policies: tuple[CompactionPolicy, ...]
    missing: tuple[str, ...]

    @property
    def steps(self) -> int:
        """How many cells `run` makes at most; the slow policies are left out of long streams."""
        return sum(
            steps(self.policies, self.size.budgets, item.seeds) * len(item.variants)
            for item in self.items
        )

    def run(
        self, watermark: float = 0.97, progress: Callable[[str], None] | None = None
    ) -> Iterator[Cell]:
        """Every cell, one trace after the other. `progress` is told what is about to run."""
        tell = progress or (lambda _: None)
        for item in self.items:
            trace = item.load()
            lives = Lives(trace)
            for variant in item.variants:
                yield from grid(
                    trace,
                    _on(item, variant, trace, self.policies),
                    self.size.budgets,
                    variant=variant,
                    watermark=watermark,
                    seeds=item.seeds,
                    progress=partial(_told, tell, f"{item.name} {variant}"),
                    lives=lives,
                )


def _told(tell: Callable[[str], None], where: str, step: str) -> None:
    tell(f"{where}: {step}")


def suite(
    size: str,
    folder: Path | None = None,
    paths: Sequence[Path] = (),
    policies: Sequence[str] | None = None,
    budgets: Sequence[float] | None = None,
) -> Suite:
    """Everything that `size` (`quick` or `full`) means for the workloads that are here.

    Parameters
    ----------
    folder : path, optional
        With `.npz` workloads; the one that the package carries, if any, is used without it.
    paths : paths
        Further workloads.
    policies : texts as `parse` reads them, optional
        In place of the usual ones. Names that are not known here are left out, and `missing` says so.
    budgets : shares, optional
        In place of the size's own.
    """
    if size not in SIZES:
        raise InvalidValue(f"suite must be one of {', '.join(SIZES)}; got {size[:40]!r}")
    much = SIZES[size] if budgets is None else replace(SIZES[size], budgets=tuple(budgets))
    found, missing = _found(folder, paths)
    items: list[Item] = []
    for path in found:
        items += _items_of(path, much)
    items.append(Item("manual", _chosen(("log", "used"), much), read_manual, much.seeds))
    made, without = _synthetic(much)
    known, unknown = known_policies(
        (*BASELINES, *OTHERS, *OURS, *ON_LOGS, *ON_SMALL) if policies is None else policies
    )
    words = [*missing, *without]
    if unknown:
        words.append(f"policies not known to this version: {', '.join(unknown)}")
    return Suite(much, (*items, *made), tuple(known), tuple(words))


def known_policies(texts: Sequence[str]) -> tuple[list[CompactionPolicy], list[str]]:
    """Policies of these texts, and the texts that nothing here is called by."""
    known: list[CompactionPolicy] = []
    unknown = []
    for text in texts:
        try:
            known.append(parse(text))
        except MemsiftError:
            unknown.append(text)
    return known, unknown


def _found(folder: Path | None, paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Workload files, by name, and what is expected but not among them."""
    found = {}
    if folder is not None:
        if not folder.is_dir():
            raise InvalidValue(f"--workloads must be a folder; got {str(folder)[-60:]!r}")
        found = {path.stem: path for path in sorted(folder.glob("*.npz"))}
    for path in paths:
        found[path.stem] = path
    for path in shipped():
        found.setdefault(path.stem, path)
    absent = [name for name in EXPECTED if name not in found]
    where = "no folder was given" if folder is None else f"not in {folder}"
    words = [f"workloads {', '.join(absent)}: {where}"] if absent else []
    # In the project's own order; others after them by name.
    order = [*(n for n in EXPECTED if n in found), *sorted(found.keys() - set(EXPECTED))]
    return [found[name] for name in order], words


def shipped() -> list[Path]:
    """Workloads that come with the package."""
    data = Path(str(resources.files("memsift"))) / "data"
    return [path for path in sorted(data.rglob("*.npz")) if path.stem in EXPECTED]


def _items_of(path: Path, size: Size) -> list[Item]:
    """One item for each of a workload's arrays of query times."""
    known = variants_of(path)
    name = path.stem
    if "log" in known:
        return [Item(name, _chosen(known, size), partial(read_npz, path), size.seeds, log=True)]
    items = []
    for group in (_ENDS, _BETWEEN):
        variants = tuple(v for v in known if v in group)
        if variants:
            first = variants[0]
            free = tuple(f"{v}{COSTLESS}" for v in variants)
            order = _chosen((*sorted(variants), *sorted(free)), size)
            items.append(Item(name, order, partial(read_npz, path, first), size.seeds))
    return items


def _chosen(variants: Sequence[str], size: Size) -> tuple[str, ...]:
    return tuple(variants) if size.every_variant else (variants[-1].removesuffix(COSTLESS),)


def _synthetic(size: Size) -> tuple[list[Item], list[str]]:
    """The project's own streams: one trace each, whose streams are the seeds."""
    try:
        module = import_module("memsift.evaluation.synthetic")
    except ModuleNotFoundError:
        return [], ["synthetic streams: memsift.evaluation.synthetic is not there"]
    made: dict[str, Callable[[int], Trace]] = module.SYNTHETIC
    items = [
        Item(name, ("log",), partial(seeded, name, make, size.synthetic_seeds), (0,))
        for name, make in made.items()
    ]
    return items, []


def seeded(name: str, make: Callable[[int], Trace], seeds: Sequence[int]) -> Trace:
    """A generator's traces, one per seed, as the streams of one: its figures are means over the seeds."""
    traces = [make(seed) for seed in seeds]
    streams = [stream for trace in traces for stream in trace.streams]
    return replace(traces[0], name=name, streams=streams)


def _on(
    item: Item, variant: str, trace: Trace, policies: Sequence[CompactionPolicy]
) -> list[CompactionPolicy]:
    """Those that are worth their time here."""
    left_out = set() if item.log and variant == "log" else set(ON_LOGS)
    if variant not in FEW or max(map(len, trace.streams)) > SMALL:
        left_out |= set(ON_SMALL)
    return [policy for policy in policies if to_text(policy) not in left_out]
