"""Suites to inherit: what every policy and every index must hold, whoever wrote it.

    from memsift.testing import PolicyTests

    class TestMyPolicy(PolicyTests):
        policy = MyPolicy()

They are plain classes with plain asserts; pytest collects the subclass and runs what it inherits.
"""

from memsift.testing.index import IndexTests
from memsift.testing.policy import PolicyTests

__all__ = ["IndexTests", "PolicyTests"]
