"""Results for eyes: figures of matplotlib, pages of HTML, and what both have in common.

`figures` are pictures for papers, `pages` reports in one file, `palette` and `scales` are shared.
`backend` is what results call.
"""
