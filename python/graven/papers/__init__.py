"""The papers: what each measured and claims, as data, and what comes out here.

| module | what |
|---|---|
| `data` | experiments, figures and claims |
| `parts` | workloads of an experiment with values of their own |
| `files` | reads `papers/*/experiments.toml` and `papers/*/claims.toml` |
| `toml` | reads a table, with refusals that say where |
| `plan` | from experiments to simulations: sizes, and the values of what a paper leaves open |
| `store` | results on disk, by the digest of what was simulated |
| `reproduction` | runs what is not stored, and holds what came out |
| `measures` | numbers of results: values, orders, trends |
| `drawn` | figures: what came out, arranged as in the paper, with what it prints |
| `rules` | when a number, an order or a trend is as a paper says |
| `costs` | items of `graven cost` that answer claims |
| `laboratory` | power failures of a paper's designs |
| `verdicts` | each claim beside what came out |
"""
