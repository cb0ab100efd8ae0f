"""Modules that every other package may use, and that know nothing of simulations.

`arguments` and `toml` check what users give, `numbers` writes numbers for people, `output` writes
files whole or not at all, `errors` are raised here, `signals` end a command in order, `folders`
have results.
"""
