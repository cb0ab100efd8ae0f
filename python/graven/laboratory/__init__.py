"""The crash laboratory: power fails, recovery runs, and what survives is judged.

`crashes` and `adversary` are campaigns, `programs` litmus programs, `check` judges all small
programs, `mutants` and `faults` try the laboratory and the designs; `hygiene` judges what captured
programs do for their own persistence, `sarif` writes it for other tools; `reports` say what came of
each, and a `state_file` keeps what a campaign has done.
"""
