"""The papers: what each measured and claims, as data, and what comes out here.

| module | what |
|---|---|
| `data` | experiments, figures and claims |
| `parts` | workloads of an experiment with values of their own |
| `readings` | questions that a text leaves open, and what may be read there |
| `programs` | real programs that stand in for a paper's |
| `files` | reads `papers/*/experiments.toml` and `papers/*/claims.toml` |
| `toml` | reads a table, with refusals that say where |
| `plan` | from experiments to simulations: sizes, seeds, the default and its alternatives |
| `store` | results on disk, by the digest of what was simulated |
| `reproduction` | runs what is not stored, and holds what came out |
| `samples` | a number with one value for each seed |
| `measures` | numbers of results: values, orders, trends |
| `needs` | which simulations a number needs, and which alternatives bear on it |
| `panels` | figures: what came out, arranged as in the paper, with what it prints |
| `rules` | when a number, an order or a trend is as a paper says, and what readings make of it |
| `costs` | items of `graven cost` that answer claims |
| `laboratory` | power failures of a paper's designs |
| `answers` | what comes of a claim under one alternative |
| `verdicts` | each claim beside what came out |
| `counts` | claims by class and by what came out |
| `sensitivity` | what moves a claim |
| `reference` | results that are shipped |
"""
