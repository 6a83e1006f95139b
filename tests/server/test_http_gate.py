"""Who comes in over HTTP, and who does not: names, token, size, patience, rate. Against a real server."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from mcp_talk import HELLO, META
from web_talk import ACCEPT, BEARER, JSON, SECRET, Web, read_answer, web

from memsift.errors import InvalidValue
from memsift.server.http import gate as gate_module
from memsift.server.http import run as run_module
from memsift.server.http.gate import LARGEST_BODY
from memsift.server.http.limits import Bucket
from memsift.server.http.names import Names, is_loopback
from memsift.server.http.token import Token, token_of
from memsift.server.mcp import endpoint

HELLO_BODY = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
).encode()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    folder = tmp_path_factory.mktemp("web")
    with web(folder / "m.memsift", allowed=["memory.example.org"]) as found:
        yield found


# ---- Host x Origin x token: 8 x 6 x 4 = 192 combinations -----------------------------------------

HOSTS = {
    "127.0.0.1:{port}": True,
    "localhost:{port}": True,
    "memory.example.org": True,
    "evil.com": False,
    "127.0.0.1.evil.com:{port}": False,
    "127.0.0.1:1": False,
    "127.0.0.1:{port}@evil.com": False,
    "": False,
}
ORIGINS = {
    None: True,
    "http://127.0.0.1:{port}": True,
    "https://memory.example.org": True,
    "null": False,
    "http://localhost:9999": False,
    "https://evil.com": False,
}
TOKENS = {
    f"Bearer {SECRET}": True,
    f"Bearer {SECRET}x": False,
    f"Basic {SECRET}": False,
    None: False,
}


@pytest.mark.parametrize("host", HOSTS)
def test_names_are_checked_before_the_token_and_all_of_them_always(served: Web, host: str) -> None:
    for origin, token in product(ORIGINS, TOKENS):
        headers = [JSON, ACCEPT]
        headers += [("Origin", origin.format(port=served.port))] if origin else []
        headers += [("Authorization", token)] if token else []
        named = [host.format(port=served.port)]
        answer = served.ask("POST", "/mcp", *headers, body=HELLO_BODY, host=named)
        wanted = 200 if TOKENS[token] else 401
        wanted = wanted if ORIGINS[origin] else 403
        wanted = wanted if HOSTS[host] else 421
        assert answer.status == wanted, (host, origin, token)
        if wanted == 200:
            served.ask(
                "DELETE", "/mcp", BEARER, ("Mcp-Session-Id", answer.headers["mcp-session-id"])
            )
        else:
            assert len(answer.body) < 100
            assert answer.headers["x-content-type-options"] == "nosniff"


# ---- one by one ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "method", "path", "headers", "host"),
    [
        (200, "GET", "/health", [], None),
        (200, "GET", "/", [], None),
        (200, "GET", "/static/page.js", [], None),
        (200, "GET", "/api/stats", [], None),
        (401, "POST", "/api/restore", [], None),
        (200, "POST", "/api/restore", [BEARER], None),
        (401, "GET", "/api/stats", [("Authorization", "Bearer no")], None),
        (401, "GET", "/api/stats", [BEARER, BEARER], None),
        (401, "GET", "/mcp", [], None),
        (401, "DELETE", "/mcp", [], None),
        (401, "OPTIONS", "/mcp", [("Origin", "http://127.0.0.1:{port}")], None),
        (401, "GET", "/mcp/", [], None),
        (404, "GET", "/nothing", [], None),
        (404, "GET", "/static/../../etc/passwd", [], None),
        (400, "GET", f"/api/stats?token={SECRET}", [], None),
        (400, "GET", f"/api/stats?access_token={SECRET}", [BEARER], None),
        (400, "GET", f"/?a=1&TOKEN={SECRET}", [], None),
        (400, "GET", "/health", [], []),
        (421, "GET", "/health", [], ["evil.com"]),
        (400, "GET", "/health", [], ["127.0.0.1:{port}", "127.0.0.1:{port}"]),
        (403, "GET", "/health", [("Origin", "http://localhost:9999")], None),
        (403, "GET", "/health", [("Origin", "http://127.0.0.1:{port}")] * 2, None),
        (403, "GET", "/api/stats", [("Sec-Fetch-Site", "cross-site")], None),
        (403, "GET", "/api/stats", [("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "no-cors")], None),
        (403, "GET", "/api/stats", [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"),
                                    ("Sec-Fetch-Dest", "document")], None),
        (403, "GET", "/", [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"),
                           ("Sec-Fetch-Dest", "iframe")], None),
        (200, "GET", "/", [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"),
                           ("Sec-Fetch-Dest", "document")], None),
        (200, "GET", "/api/stats", [("Sec-Fetch-Site", "same-origin")], None),
        (413, "POST", "/api/restore", [BEARER, ("Content-Length", "1073741824")], None),
        (401, "POST", "/api/restore", [("Content-Length", "1073741824")], None),
        (400, "POST", "/api/restore", [BEARER, ("Content-Length", "-1")], None),
    ],
)  # fmt: skip
def test_one_request_at_a_time(served: Web, status, method, path, headers, host) -> None:
    filled = [(name, value.format(port=served.port)) for name, value in headers]
    hosts = None if host is None else [name.format(port=served.port) for name in host]
    if any(name == "Content-Length" for name, _ in headers):
        answer = _declared(served, method, path, filled)
    else:
        answer = served.ask(method, path, *filled, host=hosts)
    assert answer.status == status, answer
    assert SECRET.encode() not in answer.body
    if status == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer")


def _declared(served: Web, method: str, path: str, headers: list[tuple[str, str]]):
    """A request that says how long its body is, and sends none of it."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {served.host}"]
    lines += [f"{name}: {value}" for name, value in headers]
    with socket.create_connection(("127.0.0.1", served.port), 60) as sock:
        sock.sendall("\r\n".join([*lines, "", ""]).encode())
        return read_answer(sock)


def test_the_page_knows_whether_the_token_was_shown(served: Web) -> None:
    assert json.loads(served.ask("GET", "/api/stats").body)["may_write"] is False
    assert json.loads(served.ask("GET", "/api/stats", BEARER).body)["may_write"] is True


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_of_four_mebibytes_comes_in_and_one_more_byte_does_not(
    served: Web, declared: bool
) -> None:
    for size, status in ((LARGEST_BODY, 200), (LARGEST_BODY + 1, 413)):
        body = b"x" * size
        how = {"body": body} if declared else {"chunks": [body[:1000000], body[1000000:]]}
        answer = served.ask("POST", "/api/restore", BEARER, **how)
        assert answer.status == status
        if status == 200:
            assert json.loads(answer.body)["length"] == size


def test_where_reading_is_not_open_the_pages_files_are_for_a_browser_sends_no_token(
    tmp_path: Path,
) -> None:
    with web(tmp_path / "m.memsift", open_reads=False) as served:
        for path in ("/health", "/", "/static/page.js"):
            assert served.ask("GET", path).status == 200
        assert served.ask("GET", "/api/stats").status == 401
        assert served.ask("GET", "/api/stats", BEARER).status == 200


def test_who_guesses_tokens_is_slowed_down_and_nobody_else_is(tmp_path: Path) -> None:
    with web(tmp_path / "m.memsift") as served:
        served.gate.bad = Bucket(0.001, 3)
        wrong = ("Authorization", "Bearer wrong")
        assert [served.ask("POST", "/mcp", wrong).status for _ in range(5)] == [401] * 3 + [429] * 2
        assert int(served.ask("POST", "/mcp", wrong).headers["retry-after"]) >= 1
        assert served.ask("POST", "/api/restore", BEARER).status == 200


def test_too_many_requests_are_told_when_to_come_again(tmp_path: Path) -> None:
    with web(tmp_path / "m.memsift") as served:
        served.gate.good = Bucket(0.001, 2)
        answers = [served.ask("POST", "/api/restore", BEARER) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 429]
        assert int(answers[-1].headers["retry-after"]) >= 1


def test_a_bucket_fills_with_time() -> None:
    now = [0.0]
    bucket = Bucket(2.0, 3, lambda: now[0])
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
    now[0] = 0.5
    assert [bucket.take() for _ in range(2)] == [True, False]
    now[0] = 1000.0
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]


# ---- patience ------------------------------------------------------------------------------------


def test_slow_heads_and_slow_bodies_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(gate_module, "BODY_SECONDS", 0.2)
    with web(tmp_path / "m.memsift") as served:
        for start in (b"", b"GET / HTTP/1.1\r\nHost: "):
            with socket.create_connection(("127.0.0.1", served.port), 60) as sock:
                sock.sendall(start)
                assert sock.recv(1) == b""  # closed, and nothing said
        head = f"POST /api/restore HTTP/1.1\r\nHost: {served.host}\r\nAuthorization: Bearer {SECRET}\r\n"
        for rest in (
            "Content-Length: 10\r\n\r\nabc",
            "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ):
            with socket.create_connection(("127.0.0.1", served.port), 60) as sock:
                sock.sendall((head + rest).encode())
                assert read_answer(sock).status == 408
        assert served.ask("GET", "/health").status == 200


def test_a_second_request_on_a_connection_is_hurried_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "HEAD_SECONDS", 0.5)
    with web(tmp_path / "m.memsift") as served:
        request = f"GET /health HTTP/1.1\r\nHost: {served.host}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", served.port), 60) as sock:
            for _ in range(2):
                sock.sendall(request)
                answer = b""  # head and body may come apart
                while not answer.endswith(b'"ok"}') and (part := sock.recv(65536)):
                    answer += part
                assert answer.startswith(b"HTTP/1.1 200 ")
            sock.sendall(request[:20])
            assert sock.recv(1) == b""


def test_only_so_many_large_bodies_are_held_at_once(tmp_path: Path) -> None:
    with web(tmp_path / "m.memsift") as served:
        head = (
            f"POST /api/restore HTTP/1.1\r\nHost: {served.host}\r\nAuthorization: Bearer {SECRET}\r\n"
            f"Content-Length: {LARGEST_BODY}\r\n\r\nx"
        ).encode()
        held = []
        try:
            statuses = []
            for _ in range(gate_module.LARGE_AT_ONCE):
                sock = socket.create_connection(("127.0.0.1", served.port), 60)
                sock.sendall(head)
                held.append(sock)
            # The server has begun with all of them once a further one is turned away.
            for _ in range(1000):
                statuses.append(_declared(
                    served, "POST", "/api/restore", [BEARER, ("Content-Length", str(LARGEST_BODY))]
                ).status if len(statuses) == 0 or statuses[-1] != 503 else 503)  # fmt: skip
                if statuses[-1] == 503:
                    break
            assert statuses[-1] == 503
            assert served.ask("POST", "/api/restore", BEARER, body=b"small").status == 200
            assert served.ask("GET", "/health").status == 200
        finally:
            for sock in held:
                sock.close()


# ---- MCP behind it -------------------------------------------------------------------------------


def test_sessions_of_the_older_era_end_and_are_unknown_afterwards(served: Web) -> None:
    first = served.mcp({"id": 1, "method": "initialize", "params": HELLO})
    session = ("Mcp-Session-Id", first.headers["mcp-session-id"])
    assert len(session[1]) >= 32
    assert served.mcp({"id": 2, "method": "tools/list"}, session).status == 200
    assert served.ask("DELETE", "/mcp", BEARER, session).status == 200
    assert served.mcp({"id": 3, "method": "tools/list"}, session).status == 404
    assert served.mcp({"id": 4, "method": "tools/list"}, ("Mcp-Session-Id", "x" * 32)).status == 404


def test_there_are_only_so_many_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "MOST_SESSIONS", 2)
    hello = {"id": 1, "method": "initialize", "params": HELLO}
    with web(tmp_path / "m.memsift") as served:
        answers = [served.mcp(hello) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 503]
        assert answers[2].headers["retry-after"] == "1"
        session = ("Mcp-Session-Id", answers[0].headers["mcp-session-id"])
        assert served.ask("DELETE", "/mcp", BEARER, session).status == 200
        assert served.mcp(hello).status == 200


@pytest.mark.parametrize(
    ("status", "code", "message", "headers"),
    [
        (200, None, {"id": 1, "method": "tools/list"}, {"Mcp-Method": "tools/list"}),
        (400, -32020, {"id": 1, "method": "tools/list"}, {"Mcp-Method": "ping"}),
        (400, -32022, {"id": 1, "method": "tools/list"}, {"MCP-Protocol-Version": "1999-01-01"}),
        (404, -32601, {"id": 1, "method": "no/such"}, {"Mcp-Method": "no/such"}),
        (400, -32600, {"id": None, "method": "tools/list"}, {}),
    ],
)
def test_headers_of_the_newer_era_must_say_what_the_body_says(
    served: Web, status, code, message, headers
) -> None:
    version = headers.get("MCP-Protocol-Version", "2026-07-28")
    meta = {**META, "io.modelcontextprotocol/protocolVersion": version}
    named = {"MCP-Protocol-Version": version, "Mcp-Method": message["method"], **headers}
    answer = served.mcp({**message, "params": {"_meta": meta}}, *named.items())
    assert answer.status == status, answer
    found = json.loads(answer.body)
    assert found.get("error", {}).get("code") == code


@pytest.mark.parametrize(
    "body", [b"", b"x", b"[]", b"{}", b"\xff", b"[" * 20000, b'{"id":' + b"9" * 9000 + b"}"]
)
def test_what_is_no_message_is_refused_in_both_eras(served: Web, body: bytes) -> None:
    for version in ("2025-11-25", "2026-07-28"):
        headers = (BEARER, JSON, ACCEPT, ("MCP-Protocol-Version", version))
        answer = served.ask("POST", "/mcp", *headers, body=body)
        assert 400 <= answer.status < 500, (version, answer)
    assert served.ask("GET", "/health").status == 200


# ---- names and token, by themselves --------------------------------------------------------------


def test_allowed_hosts_are_names_and_nothing_else() -> None:
    names = Names(8765, ["Memory.example.org", "other.org:99"])
    assert names.serves("memory.example.org")
    assert names.serves("memory.example.org:8765")
    assert not names.serves("other.org")
    assert names.trusts("https://other.org:99")
    for bad in ("*", "a b", "http://x", "x/y", "", "x:port", "é.org"):
        with pytest.raises(InvalidValue, match="--allowed-host"):
            Names(1, [bad])
    assert [is_loopback(h) for h in ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost")] == [
        True
    ] * 5
    assert [is_loopback(h) for h in ("0.0.0.0", "::", "10.0.0.1", "example.org", "")] == [False] * 5


def test_a_token_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "t"
    first = token_of(path)
    assert path.stat().st_mode & 0o777 == 0o600
    secret = path.read_text().strip()
    assert len(secret) == 43
    assert first.accepts(f"Bearer {secret}".encode())
    assert token_of(path).accepts(f"bearer {secret}".encode())
    for wrong in (
        None,
        b"",
        b"Bearer",
        b"Bearer ",
        secret.encode(),
        f"Bearer {secret[:-1]}".encode(),
    ):
        assert not first.accepts(wrong)
    assert secret not in repr(vars(first))
    path.chmod(0o644)
    with pytest.raises(InvalidValue, match="owner only"):
        token_of(path)
    path.chmod(0o600)
    path.write_text("short")
    with pytest.raises(InvalidValue, match="32 to 128"):
        token_of(path)
    link = tmp_path / "link"
    link.symlink_to(path)
    for bad in (link, tmp_path, tmp_path / "no" / "such"):
        with pytest.raises(InvalidValue, match="--token-file"):
            token_of(bad)
    with pytest.raises(InvalidValue):
        Token("ä" * 40)
