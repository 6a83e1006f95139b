"""A trace that is always at hand: reading Python's manual while working on the standard library."""

from __future__ import annotations

import re
import sysconfig
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from pydoc import Helper

import numpy as np

from memsift.agent.embedders import Embedder, HashedNgrams
from memsift.errors import MissingExtra
from memsift.evaluation.trace import Labels, Stream, Trace

# Paragraphs are gathered up to about this many characters: some 1,800 passages.
_PASSAGE = 220

_LOOKUPS_PER_MODULE = 24

# The first line of an entry, such as "object.__len__(self)" or "str.join(iterable)".
_ENTRY = re.compile(r" *(?:class |await |classmethod |static )?(?:\w+\.)+(\w+)(?:[(\[].*)?")

# As in pydoc: another word to look under, or a label and what to see also.
_Table = Mapping[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class _Passage:
    topic: str
    text: str


@dataclass(frozen=True)
class _Lookup:
    """What is asked, and the passages that answer it (any one will do)."""

    question: str
    answers: frozenset[int]


def read_manual(embedder: Embedder | None = None) -> Trace:
    """The topics of `pydoc` as memories, and look-ups in them as queries; one stream.

    The manual (`pydoc_data.topics`) is cut at paragraphs into passages, about 1,840 of them in
    Python 3.11, and read in alphabetical order of topics. In between the agent works through the
    top-level modules of the standard library, whose source is tokenised and never run: before each
    it reads the next share of the manual, so that with the last module all has been read. A module
    makes it look up

    - names that have an entry of their own (`__len__`, `join`): asked by name, answered by the
      entry;
    - keywords, operators and the topics that they refer to ("related help topics"): asked with the
      words that lead there in the manual's tables (`elif if`, `operators expressions
      operator-summary`), answered by the opening passage of the topic;

    and of these the 24 that it has looked up least often so far, ties in order of first use: about
    4,000 queries. What has not been read yet is asked all the same, without label.

    Notes
    -----
    Needs are judged by coverage, one group a query: the manual repeats itself word for word under
    several topics, and each copy answers as well. The answer to a keyword is the opening and not
    just any passage of the topic, because some topics have 200 passages: ten hits hold few of them
    (evidence recall .44 with everything kept) and yet nearly always one (coverage .91, and still
    .72 with a random half dropped). By opening and entry, coverage@10 of keeping everything is .84
    and of a random half .46 (Python 3.11, `HashedNgrams()`): there is something to win by choosing.

    `meaning` joins the copies; `cost` is in words; titles are the topic and first words.
    """
    passages = _passages()
    n = len(passages)
    copies: dict[str, list[int]] = defaultdict(list)
    for row, passage in enumerate(passages):
        copies[passage.text].append(row)
    index = _Index(passages, copies)
    modules = list(_modules())
    times_asked: Counter[str] = Counter()
    lookups: list[_Lookup] = []
    asked: list[int] = []
    for number, words in enumerate(modules, start=1):
        wanted = index.lookups(words)
        # `sorted` is stable: among equals the first used comes first.
        for lookup in sorted(wanted, key=lambda w: times_asked[w.question])[:_LOOKUPS_PER_MODULE]:
            times_asked[lookup.question] += 1
            lookups.append(lookup)
            asked.append(number * n // len(modules))

    if not lookups:
        raise MissingExtra(
            "read_manual needs the source of the standard library; "
            f"there is none in {sysconfig.get_path('stdlib')}"
        )

    embedder = HashedNgrams() if embedder is None else embedder
    questions = {question: i for i, question in enumerate(times_asked)}
    asked_rows = [questions[lookup.question] for lookup in lookups]
    need = [
        sorted(a for a in w.answers if a < seen) for w, seen in zip(lookups, asked, strict=True)
    ]
    stream = Stream(
        vectors=embedder.embed([passage.text for passage in passages]),
        # Questions come back often; each is embedded once.
        queries=embedder.embed(list(questions))[asked_rows],
        asked=np.array(asked, np.int64),
        need=Labels.from_lists(need, [[0] * len(rows) for rows in need]),
        meaning=np.array([copies[passage.text][0] for passage in passages], np.int64),
        cost=np.array([len(passage.text.split()) for passage in passages], np.int64),
        titles=[_title(passage) for passage in passages],
    )
    return Trace("manual", [stream], need="coverage", score_from=0.3)


class _Index:
    """Which passages answer which word."""

    def __init__(self, passages: list[_Passage], copies: dict[str, list[int]]) -> None:
        self._opening: dict[str, frozenset[int]] = {}
        entries: dict[str, set[int]] = defaultdict(set)
        for passage in passages:
            self._opening.setdefault(passage.topic, frozenset(copies[passage.text]))
            for name in _entries(passage.text):
                entries[name].update(copies[passage.text])
        self._entries = {name: frozenset(rows) for name, rows in entries.items()}

    def lookups(self, words: list[str]) -> list[_Lookup]:
        """The look-ups that a module's words cause, without repeats, in order of first use."""
        found: dict[str, _Lookup] = {}
        for word in words:
            if (way := _way(word)) is not None:
                related = [_way(topic) for topic in way.related if topic.isupper()]
                for to in (way, *(to for to in related if to is not None)):
                    if to.topic in self._opening:
                        found.setdefault(to.question, _Lookup(to.question, self._opening[to.topic]))
            elif word in self._entries:
                found.setdefault(word, _Lookup(word, self._entries[word]))
        return list(found.values())


@dataclass(frozen=True)
class _Way:
    """The way through pydoc's tables from a word to its topic."""

    question: str
    topic: str
    related: tuple[str, ...]


def _way(word: str) -> _Way | None:
    """Follow a keyword, operator or topic to where it is explained, as `help()` would."""
    keywords: _Table = Helper.keywords
    topics: _Table = Helper.topics
    related: tuple[str, ...] = ()
    if word in Helper.symbols:
        word, *rest = Helper.symbols[word].split()
        related = tuple(rest)
    passed: list[str] = []
    while word not in passed:
        passed.append(word)
        target = topics.get(word) or keywords.get(word)
        if not target:
            return None
        if isinstance(target, tuple):
            label, more = target
            return _Way(" ".join([*passed, label]).lower(), label, (*more.split(), *related))
        word = target
    return None


def _passages() -> list[_Passage]:
    try:
        from pydoc_data.topics import topics
    except ImportError as error:  # some distributions package it apart from Python
        raise MissingExtra(
            "read_manual needs Python's own manual, the module pydoc_data.topics; "
            "it is not installed with this Python"
        ) from error
    return [_Passage(topic, text) for topic in sorted(topics) for text in _cut(str(topics[topic]))]


def _cut(text: str) -> Iterator[str]:
    """Whole paragraphs, gathered while they fit into a passage."""
    gathered: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        if gathered and sum(map(len, gathered)) + len(paragraph) > _PASSAGE:
            yield "\n\n".join(gathered)
            gathered = []
        if paragraph.strip():
            gathered.append(paragraph.strip("\n"))
    if gathered:
        yield "\n\n".join(gathered)


def _entries(text: str) -> Iterator[str]:
    """The names with an entry in a passage: entries are the first lines of a paragraph."""
    for paragraph in text.split("\n\n"):
        for line in paragraph.split("\n"):
            if (match := _ENTRY.fullmatch(line)) is None:
                break
            yield match[1]


def _modules() -> Iterator[list[str]]:
    """The names, keywords and operators of each module, each once, in order of first use."""
    folder = Path(sysconfig.get_path("stdlib"))
    for path in sorted(folder.glob("*.py"), key=lambda path: path.name):
        if path.name.startswith("_sysconfigdata"):
            continue  # generated for one platform
        try:
            with tokenize.open(path) as source:
                tokens = list(tokenize.generate_tokens(source.readline))
        except (OSError, SyntaxError, UnicodeError, tokenize.TokenError):
            continue
        words = (token.string for token in tokens if token.type in (tokenize.NAME, tokenize.OP))
        yield list(dict.fromkeys(words))


def _title(passage: _Passage) -> str:
    return f"{passage.topic}: {' '.join(passage.text.split()[:8])}"
