"""A batch of texts on its way into the store: what is new is added, what is known is refreshed. One transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from memsift.agent.duplicates import twins
from memsift.agent.embedding import BATCH
from memsift.agent.records import Remembered
from memsift.durable import DurableStore
from memsift.kernels import Float32
from memsift.types import Ids


@dataclass(frozen=True)
class NewTexts:
    """n checked texts with their unit rows (n, dim), and what each brings along: one value for all, or n of them."""

    texts: list[str]
    rows: Float32
    given: dict[str, Any]

    def part(self, start: int) -> NewTexts:
        """Those of one batch."""
        return self.take(list(range(start, min(start + BATCH, len(self.texts)))))

    def take(self, places: list[int]) -> NewTexts:
        """Those in these places."""
        given = {
            name: [value[i] for i in places] if _is_many(value) else value
            for name, value in self.given.items()
        }
        return NewTexts([self.texts[i] for i in places], self.rows[places], given)

    def of(self, place: int) -> dict[str, Any]:
        """What one of them brings along."""
        return {
            name: value[place] if _is_many(value) else value for name, value in self.given.items()
        }


def keep(
    store: DurableStore, new: NewTexts, threshold: float, *, payloads: bool
) -> list[Remembered]:
    """Add or refresh, as if one came after the other. Within a transaction."""
    out: list[Remembered] = []
    before, last = store.ids(), store.last_compaction
    for start in range(0, len(new.texts), BATCH):
        out += _keep(store, new.part(start), threshold, payloads=payloads)
    if store.last_compaction is not last:
        known = np.union1d(before, [one.id for one in out])
        left = known[~store.holds(known)]
        out[-1] = replace(out[-1], evicted=tuple(left.tolist()))
    return out


def _keep(
    store: DurableStore, part: NewTexts, threshold: float, *, payloads: bool
) -> list[Remembered]:
    found = twins(store, part.texts, part.rows, threshold, payloads=payloads)
    places = [place for place, twin in enumerate(found) if twin is None]
    fresh = part.take(places)
    ids = store.add_many(fresh.rows, **fresh.given)
    if payloads:
        _put(store, ids, fresh.texts)
    id_at = dict(zip(places, ids.tolist(), strict=True))
    out = []
    for place, twin in enumerate(found):
        if twin is None:
            out.append(Remembered(id_at[place], added=True))
            continue
        id_ = twin.id if twin.id >= 0 else id_at[-1 - twin.id]
        _refresh(store, id_, part.of(place))
        out.append(Remembered(id_, added=False, similarity=twin.similarity))
    return out


def _put(store: DurableStore, ids: Ids, texts: list[str]) -> None:
    """Keep the texts of newcomers, some of which may have made room for later ones and be gone."""
    here = store.holds(ids)
    if not here.all():
        here |= np.isin(ids, store.archived())
    store.texts.put(ids[here], [text for text, is_here in zip(texts, here, strict=True) if is_here])


def _refresh(store: DurableStore, id_: int, given: dict[str, Any]) -> None:
    if id_ not in store:  # it left to make room for one of its own batch
        return
    store.touch(id_)
    changes = {name: given[name] for name in ("metadata", "importance") if given[name] is not None}
    if changes:
        store.update(id_, **changes)
    if given["pinned"]:
        store.pin(id_)


def _is_many(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray))
