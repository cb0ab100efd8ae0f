"""Executors of simulations: this host, the workers of a Dask cluster, or jobs of Slurm.

| module | what it has |
|---|---|
| `named` | what `--on` says, as an executor |
| `units` | a job as it is sent to another process, and what that does with it |
| `worker` | the program that a job of Slurm runs |
| `estimates` | how long a job will take, and how much memory it needs |
| `local` | this host |
| `dispatch` | which job is next: the longest first, lost ones again, stragglers twice |
| `dask` | a running cluster of Dask |
| `slurm` | job arrays of Slurm |
| `shards` | parts of a list of jobs, for who starts them by hand |

Whatever runs a job, its result is the same, and is kept in the store as it comes. So what runs
twice, or dies on the way, costs time and changes nothing.
"""
