"""The HTTP embedder against a real server on loopback that answers well, and badly in every way that we know."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from memsift.agent.embedders import parse
from memsift.agent.embedders.openai import BATCH_BYTES, BATCH_TEXTS, OpenAIEmbedder
from memsift.errors import EmbedderFailed, InvalidType, InvalidValue

KEY = "sk-canary-7f3a"
TEXT = "canary text 91b2"
Answer = Callable[["Handler"], None]


def vector_of(text: str) -> list[float]:
    """What the honest server says of a text."""
    return [float(len(text)), 1.0, float(sum(text.encode()) % 97)]


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, dict(self.headers), self.body))
        self.close_connection = True
        (self.server.script.pop(0) if self.server.script else honest)(self)

    def do_GET(self) -> None:
        self.server.seen.append((self.path, dict(self.headers), None))
        self.say(200, {})

    def say(self, status: int, message: Any, **headers: str) -> None:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.script: list[Answer] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, *_: Any) -> None:
        pass  # clients hang up on purpose


def honest(handler: Handler) -> None:
    data = [{"index": i, "embedding": vector_of(t)} for i, t in enumerate(handler.body["input"])]
    handler.say(200, {"object": "list", "data": data[::-1], "model": "m"})


def says(message: Any) -> Answer:
    return lambda handler: handler.say(200, message)


def refuses(status: int, **headers: str) -> Answer:
    return lambda handler: handler.say(status, {"error": f"bad key {KEY}: {TEXT}"}, **headers)


def rows(*vectors: Any, start: int = 0) -> dict[str, Any]:
    return {"data": [{"index": i, "embedding": v} for i, v in enumerate(vectors, start)]}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("MEMSIFT_EMBEDDER_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "another-key")
    served = Server()
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.over.set()
    served.shutdown()
    thread.join()
    served.server_close()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def embedder(server: Server, pauses: list[float]) -> OpenAIEmbedder:
    return OpenAIEmbedder("m", server.url, sleep=pauses.append)


# ---- an honest server ----------------------------------------------------------------------------


def test_rows_come_in_the_order_of_the_texts_though_the_server_turns_them_round(
    server: Server, embedder: OpenAIEmbedder
) -> None:
    texts = ["a", "bb", "ccc"]
    expected = np.array([vector_of(t) for t in texts])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = embedder.embed(texts)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert [(path, body) for path, _, body in server.seen] == [
        ("/v1/embeddings", {"model": "m", "input": texts})
    ]


def test_making_one_asks_nobody_and_dim_asks_once(server: Server, embedder: OpenAIEmbedder) -> None:
    assert embedder.fingerprint == f"openai:m@127.0.0.1:{server.server_port}"
    assert server.seen == []
    assert (embedder.dim, embedder.dim) == (3, 3)
    assert len(server.seen) == 1


def test_many_texts_go_in_several_requests(server: Server, embedder: OpenAIEmbedder) -> None:
    short, long = ["x" * (1 + i % 7) for i in range(BATCH_TEXTS + 3)], ["y" * 60_000] * 6
    found = embedder.embed(short + long)
    sent = [body["input"] for _, _, body in server.seen]
    assert [text for part in sent for text in part] == short + long
    assert all(len(part) <= BATCH_TEXTS for part in sent)
    assert all(sum(map(len, part)) <= BATCH_BYTES for part in sent)
    assert len(found) == len(short + long)


def test_no_texts_give_no_rows(embedder: OpenAIEmbedder) -> None:
    assert embedder.embed([]).shape == (0, 3)


def test_threads_share_one(server: Server, embedder: OpenAIEmbedder) -> None:
    found: dict[int, Any] = {}
    crew = [
        threading.Thread(target=lambda i=i: found.update({i: embedder.embed(["z" * (i + 1)])}))
        for i in range(8)
    ]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    for i, row in found.items():
        expected = np.array(vector_of("z" * (i + 1)))
        np.testing.assert_allclose(row[0], expected / np.linalg.norm(expected), atol=1e-6)
    assert len(found) == 8


# ---- the key -------------------------------------------------------------------------------------


def test_the_key_is_that_of_the_environment_at_the_moment_of_the_request(
    server: Server, embedder: OpenAIEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder.embed(["a"])
    monkeypatch.setenv("MEMSIFT_EMBEDDER_KEY", "next\n")
    embedder.embed(["a"])
    monkeypatch.delenv("MEMSIFT_EMBEDDER_KEY")
    embedder.embed(["a"])
    sent = [headers.get("Authorization") for _, headers, _ in server.seen]
    assert sent == [f"Bearer {KEY}", "Bearer next", None]


def test_openais_key_goes_to_openai_alone(server: Server) -> None:
    OpenAIEmbedder("m", server.url, key_env="MINE").embed(["a"])
    OpenAIEmbedder("m", server.url).embed(["a"])
    assert all("another-key" not in str(headers) for _, headers, _ in server.seen)
    assert OpenAIEmbedder("m")._endpoint.key_env == "OPENAI_API_KEY"


def test_a_key_that_is_no_header_is_refused_without_being_shown(
    server: Server, embedder: OpenAIEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMSIFT_EMBEDDER_KEY", f"{KEY}\r\nX-Evil: 1")
    with pytest.raises(InvalidValue, match="MEMSIFT_EMBEDDER_KEY must be printable") as caught:
        embedder.embed(["a"])
    assert KEY not in str(caught.value)
    assert server.seen == []


FAILURES: dict[str, Answer] = {
    "401": refuses(401),
    "404": refuses(404),
    "no JSON": says(b"<html>"),
    "wrong count": says(rows([1, 2, 3], [1, 2, 3])),
    "reason phrase": lambda handler: handler.wfile.write(f"HTTP/1.1 418 {KEY}\r\n\r\n".encode()),
    "no HTTP": lambda handler: handler.wfile.write(f"{KEY}\r\n\r\n".encode()),
}


@pytest.mark.parametrize("answer", FAILURES.values(), ids=FAILURES)
def test_neither_key_nor_text_gets_into_errors_reprs_or_logs(
    server: Server, embedder: OpenAIEmbedder, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script = [answer] * 4
    with pytest.raises(EmbedderFailed) as caught:
        embedder.embed([TEXT])
    said = [str(caught.value), repr(embedder), repr(embedder._endpoint), caplog.text]
    assert all(KEY not in words and TEXT not in words for words in said)


# ---- a server that misbehaves --------------------------------------------------------------------

BIG = 10**400
WRONG: dict[str, tuple[Any, str]] = {
    "too few": (rows([1, 2, 3]), "one vector per text: 2; got 1"),
    "too many": (rows([1, 2, 3], [1, 2, 3], [1, 2, 3]), "got 3"),
    "none": ({"data": []}, "got 0"),
    "no list": ({"data": "x"}, "got none"),
    "no object": ([1, 2], "got none"),
    "null": (None, "got none"),
    "not objects": ({"data": [[1, 2, 3], [1, 2, 3]]}, "number its vectors from 0 to 1"),
    "no index": ({"data": [{"embedding": [1, 2, 3]}] * 2}, "number its vectors"),
    "one index twice": ({"data": rows([1, 2, 3])["data"] * 2}, "number its vectors"),
    "index from 1": (rows([1, 2, 3], [1, 2, 3], start=1), "number its vectors"),
    "bools as indices": (
        {"data": [{"index": i, "embedding": [1, 2]} for i in (False, True)]},
        "number its vectors",
    ),
    "base64": (rows("AACAPw==", "AACAPw=="), "lists of numbers"),
    "texts": (rows(["1", "2"], ["1", "2"]), "lists of numbers"),
    "bools": (rows([True, False], [True, False]), "lists of numbers"),
    "nested": (rows([[1, 2]], [[1, 2]]), "lists of numbers"),
    "NaN": (rows([1, 2, 3], [1, float("nan"), 3]), r"rows\[1, 1\] must be finite"),
    "infinity": (rows([1, 2, 3], [1, 2, float("inf")]), r"rows\[1, 2\] must be finite"),
    "beyond float32": (rows([1, 2, 3], [1, 2, 1e39]), "must be finite"),
    "an enormous integer": (rows([1, 2, 3], [1, 2, BIG]), "no usable vectors"),
    "zero": (rows([1, 2, 3], [0, 0, 0]), r"rows\[1\] must have a direction"),
    "empty": (rows([], []), "at least 1 dimension"),
    "uneven": (rows([1, 2, 3], [1, 2]), "equally long rows"),
    "no JSON": (b"hello", "must answer with JSON"),
    "cut JSON": (b'{"data": [', "must answer with JSON"),
    "no UTF-8": (b"\xff\xfe\xff", "must answer with JSON"),
    "deep JSON": (b"[" * 200_000, "must answer with JSON"),
    "nothing": (b"", "must answer with JSON"),
}


@pytest.mark.parametrize(("message", "words"), WRONG.values(), ids=WRONG)
def test_an_answer_that_is_not_one_vector_per_text_is_refused(
    server: Server, embedder: OpenAIEmbedder, message: Any, words: str
) -> None:
    server.script = [says(message)]
    with pytest.raises(EmbedderFailed, match=words):
        embedder.embed(["a", "b"])
    assert len(server.seen) == 1, "what is wrong stays wrong: it is not asked again"


def test_another_length_than_the_first_is_refused(server: Server, embedder: OpenAIEmbedder) -> None:
    embedder.embed(["a"])
    server.script = [says(rows([1, 2, 3, 4]))]
    with pytest.raises(EmbedderFailed, match="vectors of 3 numbers; got 4"):
        embedder.embed(["a"])


def test_a_dim_that_was_given_is_held_to(server: Server) -> None:
    embedder = OpenAIEmbedder("m", server.url, dim=5)
    assert embedder.dim == 5
    assert server.seen == []
    with pytest.raises(EmbedderFailed, match="vectors of 5 numbers; got 3"):
        embedder.embed(["a"])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(server: Server, embedder: OpenAIEmbedder, status: int) -> None:
    server.script = [refuses(status, Location=f"http://localhost:{server.server_port}/stolen")]
    with pytest.raises(EmbedderFailed, match=f"answered {status} .*redirects are not followed"):
        embedder.embed(["a"])
    assert [path for path, _, _ in server.seen] == ["/v1/embeddings"]


def test_busy_then_well(server: Server, embedder: OpenAIEmbedder, pauses: list[float]) -> None:
    server.script = [refuses(429), refuses(503), refuses(500)]
    assert len(embedder.embed(["a"])) == 1
    assert pauses == [0.5, 1.0, 2.0]


def test_a_server_may_say_how_long_to_wait_within_reason(
    server: Server, embedder: OpenAIEmbedder, pauses: list[float]
) -> None:
    server.script = [
        refuses(429, Retry_After="7"),
        refuses(429, Retry_After="99999"),
        refuses(429, Retry_After="Wed, 21 Oct 2026 07:28:00 GMT"),
    ]
    embedder.embed(["a"])
    assert pauses == [7.0, 30.0, 2.0]


def test_a_server_that_stays_busy_is_given_up(
    server: Server, embedder: OpenAIEmbedder, pauses: list[float]
) -> None:
    server.script = [refuses(429)] * 9
    with pytest.raises(EmbedderFailed, match="answered 429 Too Many Requests, 4 times in a row"):
        embedder.embed(["a"])
    assert len(server.seen) == 4
    assert len(pauses) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 501])
def test_what_another_attempt_would_not_help_is_asked_once(
    server: Server, embedder: OpenAIEmbedder, status: int
) -> None:
    server.script = [refuses(status)]
    with pytest.raises(EmbedderFailed, match=f"answered {status}"):
        embedder.embed(["a"])
    assert len(server.seen) == 1


def silent(handler: Handler) -> None:
    handler.server.over.wait(60)


def dripping(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    while not handler.server.over.wait(0.02):
        handler.wfile.write(b" ")


@pytest.mark.parametrize("answer", [silent, dripping])
def test_a_slow_server_is_not_waited_for(server: Server, answer: Answer) -> None:
    server.script = [answer] * 2
    embedder = OpenAIEmbedder("m", server.url, timeout_seconds=0.2, attempts=2, sleep=lambda _: 0)
    with pytest.raises(EmbedderFailed, match=r"did not answer within 0\.2 seconds, 2 times"):
        embedder.embed(["a"])


def endless(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.over.is_set():
        handler.wfile.write(b" " * 65_536)


def test_an_endless_answer_is_cut(
    server: Server, embedder: OpenAIEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memsift.agent.embedders.http.LARGEST_ANSWER", 2**20)
    server.script = [endless]
    with pytest.raises(EmbedderFailed, match="must answer in 1,048,576 bytes; got more"):
        embedder.embed(["a"])


def half(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(json.dumps(rows([1, 2, 3])).encode())


def test_an_answer_that_breaks_off_is_asked_for_again(
    server: Server, embedder: OpenAIEmbedder
) -> None:
    server.script = [half]
    assert len(embedder.embed(["a"])) == 1
    assert len(server.seen) == 2


def test_nobody_there() -> None:
    gone = Server()
    gone.server_close()
    embedder = OpenAIEmbedder("m", gone.url, attempts=2, sleep=lambda _: 0)
    with pytest.raises(EmbedderFailed, match="could not be reached"):
        embedder.embed(["a"])


def test_loopback_needs_no_proxy(
    server: Server, embedder: OpenAIEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy for plain http would be shown the key."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert len(embedder.embed(["a"])) == 1


# ---- what may be asked for -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/v1",
        "http://localhost.example.com/v1",
        "http://127.0.0.1.example.com/v1",
        "http://10.0.0.1/v1",
        "ftp://127.0.0.1/v1",
        "file:///etc/passwd",
        "https:///v1",
        "https://user:secret@example.com/v1",
        "https://example.com/v1?key=secret",
        "https://example.com/v1#secret",
        "https://exa mple.com/v1",
        "https://example.com:99999/v1",
        "https://[::1/v1",
        "https://exämple.com/v1",
        "https://example.com/\r\nX: secret",
        "",
    ],
)
def test_an_address_that_a_key_must_not_go_to_is_refused(url: str) -> None:
    with pytest.raises(InvalidValue, match="base_url must be https://HOST") as caught:
        OpenAIEmbedder("m", url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["https://example.com/v1", "http://localhost:8080/v1", "http://[::1]:8080", "http://127.9.9.9"],
)
def test_https_and_loopback_are_welcome(url: str) -> None:
    assert OpenAIEmbedder("m", url).fingerprint.startswith("openai:m@")


def test_a_spec_names_model_and_address() -> None:
    made = parse("openai:org/model@v2@https://example.com/v1")
    assert made.fingerprint == "openai:org/model@v2@example.com"
    assert repr(made) == "OpenAIEmbedder('openai:org/model@v2@example.com')"


@pytest.mark.parametrize(
    "spec", ["openai:", "openai:m", "openai:@https://x/v1", "openai:m@http://x"]
)
def test_half_a_spec_is_refused(spec: str) -> None:
    with pytest.raises(InvalidValue):
        parse(spec)


def test_parameters_are_checked() -> None:
    with pytest.raises(InvalidType, match="model must be text"):
        OpenAIEmbedder(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="model must be a name"):
        OpenAIEmbedder("")
    with pytest.raises(InvalidValue, match="timeout_seconds must be above 0"):
        OpenAIEmbedder("m", timeout_seconds=0)
    with pytest.raises(InvalidValue, match="attempts must be an integer from 1 to 20"):
        OpenAIEmbedder("m", attempts=0)
    with pytest.raises(InvalidValue, match=r"texts\[1\] must have at least 1 character"):
        OpenAIEmbedder("m").embed(["a", ""])
