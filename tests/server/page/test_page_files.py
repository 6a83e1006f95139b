"""What is served beside JSON: small files of our own, under a policy that lets in nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from page_world import client_of, filled

import memsift.server.page

STATIC = Path(memsift.server.page.__file__).parent / "static"
SCRIPTS = sorted(STATIC.glob("*.js"))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with filled(tmp_path_factory.mktemp("files") / "page.memsift", 20) as memory:
        yield client_of(memory)


class Page(HTMLParser):
    """Every tag with its attributes, and the text inside scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("script", "style") and data.strip():
            self.inside.append(data)


@pytest.mark.parametrize(
    "path", ["/", "/static/page.css", "/static/main.js", "/favicon.ico", "/api/state", "/api/no", "/static/no"]
)  # fmt: skip
def test_every_answer_is_fenced_in(client: Any, path: str) -> None:
    headers = client.get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    kinds = ("script-src", "style-src", "img-src", "connect-src")
    assert {policy[kind] for kind in kinds} == {"'self'"}
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_json_is_kept_by_nobody_and_files_are_asked_for_again(client: Any) -> None:
    assert client.get("/api/state").headers["cache-control"] == "no-store"
    first = client.get("/static/page.css")
    assert first.headers["cache-control"] == "no-cache"
    again = client.get("/static/page.css", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = client.get("/static/page.css", headers={"If-None-Match": '"other"'})
    assert other.content == first.content == (STATIC / "page.css").read_bytes()


@pytest.mark.parametrize("file", sorted(STATIC.iterdir()), ids=lambda f: f.name)
def test_each_file_is_served_under_its_kind(client: Any, file: Path) -> None:
    kinds = {".css": "text/css", ".js": "text/javascript", ".html": "text/html", ".svg": "image/svg+xml"}  # fmt: skip
    response = client.get(f"/static/{file.name}")
    assert response.headers["content-type"].split(";")[0] == kinds[file.suffix]
    assert response.content == file.read_bytes()


@pytest.mark.parametrize(
    "name", ["../routes.py", "..%2froutes.py", "%2e%2e/routes.py", "/etc/passwd", "page.css%00", "__init__.py"]
)  # fmt: skip
def test_no_other_file_is_served(client: Any, name: str) -> None:
    assert client.get(f"/static/{name}").status_code == 404


def test_the_markup_has_nothing_inline_and_names_no_other_host() -> None:
    page = Page()
    page.feed((STATIC / "index.html").read_text())
    assert page.inside == []
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("src", "href"):
            if attributes.get(name) is not None:
                assert re.fullmatch(r"static/[a-z]+\.[a-z]+|#main", str(attributes[name])), tag


def test_every_id_that_a_script_asks_for_is_in_the_markup() -> None:
    page = Page()
    page.feed((STATIC / "index.html").read_text())
    there = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    asked = {name for file in SCRIPTS for name in re.findall(r"\$\(\"([a-z-]+)\"\)", file.read_text())}  # fmt: skip
    assert asked
    assert asked - there == set()


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda f: f.name)
def test_no_script_makes_markup_or_code_of_text(file: Path) -> None:
    text = file.read_text()
    markup = (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "srcdoc",
        "DOMParser",
    )
    code = ("eval(", "new Function", "createContextualFragment")
    assert [word for word in markup + code if word in text] == []
    hosts = set(re.findall(r"https?://[^\"'` ]+", text)) - {"http://www.w3.org/2000/svg"}
    assert hosts == set()
