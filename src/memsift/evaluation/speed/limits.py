"""What the speed has to be: every limit of the project in one place, and whether a measurement keeps to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Sizes = Callable[[int, int], bool]


@dataclass(frozen=True)
class Limit:
    """Ours may take at most `most` times what `against` takes; without `against`, at most `most` of the row's unit.

    A `goal` is what we aim at beyond the promise: missing it breaks nothing. An `optional` one is silent where ours is
    absent.
    """

    operation: str
    most: float
    against: str | None
    sizes: Sizes
    ours: str = "memsift"
    unit: str = "µs"
    goal: bool = False
    optional: bool = False

    @property
    def words(self) -> str:
        if self.against is None:
            text = f"at most {self.most:g} {self.unit}"
        elif is_factor(self.most):
            text = f"at least {1 / self.most:.3g} × as fast as {self.against}"
        else:
            text = f"at most {self.most:g} × {self.against}"
        who = "" if self.ours == "memsift" else f"{self.ours}: "
        return f"{'goal: ' if self.goal else ''}{who}{text}"


def is_factor(most: float) -> bool:
    """Whether a limit reads better as "so many times as fast": 1 / 1.5, 1 / 2 and less."""
    return most < 0.7


@dataclass(frozen=True)
class Verdict:
    """One limit and what became of it: `figure` is ours by theirs (or ours alone), None where one is absent."""

    operation: str
    limit: str
    ours: str
    against: str | None
    figure: float | None
    most: float
    holds: bool | None
    goal: bool = False


def at(*sizes: tuple[int, int]) -> Sizes:
    return lambda n, dim: (n, dim) in sizes


def wide(low: int = 0) -> Sizes:
    """Real embeddings, from `low` entries on."""
    return lambda n, dim: dim == 384 and n >= low


SMALL = at((2_000, 64))
EVERY: Sizes = lambda n, dim: True  # noqa: E731
BATCH = "search, batch of 100"
MEMORY = "memory"
ADD = "add, batches of 1,000"
BESIDE = "add beside a compaction, p99"
PLAIN, LRU, FAST = "memsift coherence", "memsift lru", "memsift[fast]"
IDLE, UNFED, SMALLER = "idle", "search that feeds nothing", "at 20,000"


def beside(operation: str, factor: float, peer: str, sizes: Sizes) -> tuple[Limit, Limit]:
    """As many times as fast as a peer: for the store as it comes, and for `memsift[fast]` where that takes part."""
    most = 1 / factor
    return (
        Limit(operation, most, peer, sizes),
        Limit(operation, most, peer, sizes, FAST, optional=True),
    )


LIMITS = (
    Limit("search", 2.5, "numpy", SMALL),
    Limit("search", 1.0, "numpy", SMALL, goal=True),
    Limit("search", 1 / 2, "numpy", wide(20_000)),
    Limit("search", 1 / 4, "numpy", wide(20_000), FAST),
    *beside("search", 4, "usearch exact", wide()),
    *beside("search", 1.5, "faiss Flat", wide(20_000)),
    *beside("search", 12, "sqlite-vec", wide()),
    *beside("search", 3, "chroma", at((20_000, 384))),
    *beside(BATCH, 2, "faiss Flat", wide()),
    *beside(BATCH, 4, "usearch exact", wide()),
    Limit("compact", 0.7, "numpy", SMALL),
    Limit("compact", 1 / 4, "numpy", wide(20_000)),
    Limit("compact", 1 / 5, "numpy", wide(20_000), FAST),
    Limit("search that feeds the window", 1.03, UNFED, at((20_000, 384))),
    Limit("window read, per 1,000 entries", 2.0, None, wide(20_000)),
    Limit(ADD, 4.0, None, wide()),
    Limit(ADD, 4.0, None, wide(), PLAIN),
    Limit(ADD, 4.0, None, wide(), LRU),
    Limit(BESIDE, 5.0, IDLE, at((100_000, 384))),
    Limit(f"{BESIDE} (coherence)", 5.0, IDLE, at((100_000, 384))),
    Limit("growth: search, per 1,000 entries", 2.0, SMALLER, at((1_000_000, 384))),
    Limit("growth: compact, per 1,000 entries", 2.0, SMALLER, at((1_000_000, 384))),
    Limit(MEMORY, 550.0, None, at((1_000_000, 384)), FAST, "bytes per entry"),
    Limit("file: add", 3.0, "SQLite", EVERY),
    Limit("file: reopen", 2.0, "SQLite", EVERY),
    Limit("file: compact", 2.0, "SQLite", EVERY),
)


def verdicts_for(
    operation: str, n: int, dim: int, figures: Mapping[str, float | None]
) -> list[Verdict]:
    """What the limits say of these medians by contender. A contender that has no figure leaves the verdict open."""
    found = []
    for limit in LIMITS:
        if limit.operation != operation or not limit.sizes(n, dim):
            continue
        ours = figures.get(limit.ours)
        if limit.optional and ours is None:
            continue
        theirs = 1.0 if limit.against is None else figures.get(limit.against)
        figure = None if ours is None or not theirs else float(f"{ours / theirs:.4g}")
        found.append(
            Verdict(
                operation,
                limit.words,
                limit.ours,
                limit.against,
                figure,
                limit.most,
                None if figure is None else figure <= limit.most,
                limit.goal,
            )
        )
    return found
