"""Makes a release and checks it: `python -m release`; docs/guides/releasing.md says more."""
