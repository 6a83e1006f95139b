"""Planted bugs."""
PLANTS = {"none": lambda: None}
