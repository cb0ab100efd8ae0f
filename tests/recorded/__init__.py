"""Recorded runs: the engine's results for a fixed list of runs, and a check against them."""
