"""Evaluation: traces of real agents, replayed on the real store, and what it still finds."""
