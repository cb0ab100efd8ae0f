"""Running simulations.

`job` is one simulation, `pool` runs tasks on threads, `work` keeps results as they come,
`experiment` is all of it for simulations, `requests` for anything else of the engine.
"""
