"""Suites to inherit: what every policy, every index and every source must hold, whoever wrote it.

    from memsift.testing import PolicyTests

    class TestMyPolicy(PolicyTests):
        policy = MyPolicy()

They are plain classes with plain asserts; pytest collects the subclass and runs what it inherits.
"""

from memsift.testing.index import IndexTests
from memsift.testing.policy import PolicyTests
from memsift.testing.source import SourceTests

__all__ = ["IndexTests", "PolicyTests", "SourceTests"]
