"""Results for eyes: charts drawn by matplotlib, and pages of HTML.

`figures` are charts for papers, notebooks and pages; `pages` are reports in one file; `palette`
and `scales` have their colours and scales. `backend` has the functions that results call.
"""
