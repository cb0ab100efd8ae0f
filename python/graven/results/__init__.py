"""Results of simulations, and numbers that follow from them.

`record` is one simulation, `comparison` many side by side, `intervals` their spread, `region` and
`recovery` what they measure; `formats` and `frames` are what results are written as, `differences`
and `changes` compare results with others. `views` shows them: as pictures, pages, tables of
notebooks.
"""
