"""The explorer: what a store has, in a browser (`graven serve`).

It reads and never writes: `contents` knows the results, `view` what a page shows as its address
says it, `pictures` what comes of that, `app` answers requests, and `server` listens.
"""
