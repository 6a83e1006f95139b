"""Policies: signals with weights and a rule for choosing. Each is a frozen value with a name."""

from memsift.policies.base import CompactionPolicy, ScoredPolicy, Term, policy_name
from memsift.policies.baselines import FifoPolicy, RandomPolicy
from memsift.policies.reference import CoherencePolicy, LfuPolicy, LruPolicy
from memsift.policies.registry import from_dict, parse, parse_list, register, to_text
from memsift.policies.weighted import WeightedPolicy

__all__ = [
    "CoherencePolicy",
    "CompactionPolicy",
    "FifoPolicy",
    "LfuPolicy",
    "LruPolicy",
    "RandomPolicy",
    "ScoredPolicy",
    "Term",
    "WeightedPolicy",
    "from_dict",
    "parse",
    "parse_list",
    "policy_name",
    "register",
    "to_text",
]
