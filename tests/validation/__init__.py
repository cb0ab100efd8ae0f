"""Comparisons of Graven with other simulators; the README says more."""
