"""The papers: what each measured and claims, as data, and what comes out here.

| module | what |
|---|---|
| `data` | the tables of `papers/*/experiments.toml` and `papers/*/claims.toml` |
| `toml` | reading such a table, with refusals that say where |
| `plan` | from experiments to simulations: sizes, and the values of what a paper leaves open |
| `store` | results on disk, by the digest of what was simulated |
| `reproduction` | runs what is not stored, and holds what came out |
| `measures` | numbers of results: values, orders, trends |
| `verdicts` | each claim beside what came out |
| `machines` | values of a paper's machine |
"""
