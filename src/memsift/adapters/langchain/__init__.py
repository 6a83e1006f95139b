"""LangChain's `VectorStore` on a memsift file, inside a hard budget, and memsift's embedders as LangChain's."""

from memsift.adapters.extras import needed

with needed("langchain_core", "langchain"):
    from memsift.adapters.langchain.embeddings import MemsiftEmbeddings
    from memsift.adapters.langchain.store import MemsiftVectorStore

__all__ = ["MemsiftEmbeddings", "MemsiftVectorStore"]
