"""Policies: signals with weights and a rule for choosing. Each is a frozen value with a name."""

from memsift.policies.adaptive import AdaptivePolicy
from memsift.policies.base import CompactionPolicy, ScoredPolicy, Term, policy_name
from memsift.policies.baselines import FifoPolicy, RandomPolicy
from memsift.policies.floor import FlooredPolicy
from memsift.policies.gdsf import GdsfPolicy
from memsift.policies.graph import GraphPolicy
from memsift.policies.human import ActrPolicy, EbbinghausPolicy, GenerativeAgentsPolicy
from memsift.policies.plain import LongestPolicy, OldestPolicy, ShortestPolicy
from memsift.policies.reference import CoherencePolicy, LfuPolicy, LruPolicy
from memsift.policies.registry import from_dict, parse, parse_list, register, to_text
from memsift.policies.weighted import WeightedPolicy

__all__ = [
    "ActrPolicy",
    "AdaptivePolicy",
    "CoherencePolicy",
    "CompactionPolicy",
    "EbbinghausPolicy",
    "FifoPolicy",
    "FlooredPolicy",
    "GdsfPolicy",
    "GenerativeAgentsPolicy",
    "GraphPolicy",
    "LfuPolicy",
    "LongestPolicy",
    "LruPolicy",
    "OldestPolicy",
    "RandomPolicy",
    "ScoredPolicy",
    "ShortestPolicy",
    "Term",
    "WeightedPolicy",
    "from_dict",
    "parse",
    "parse_list",
    "policy_name",
    "register",
    "to_text",
]
