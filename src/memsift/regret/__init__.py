"""Regret: what was forgotten and wanted again, and what a choice would cost."""

from memsift.regret.expected import Expected, expected, regret_curve
from memsift.regret.figures import Age, Regret, Wanted

__all__ = ["Age", "Expected", "Regret", "Wanted", "expected", "regret_curve"]
