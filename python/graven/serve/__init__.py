"""The explorer: what a store has, in a browser (`graven serve`).

It reads and never writes: `stock` knows what is there, `view` what a page shows as its address says
it, `drawn` what comes of that, `app` answers requests, and `server` listens.
"""
