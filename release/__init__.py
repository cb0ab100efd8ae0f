"""Makes a release and checks it: `python -m release`; docs/releasing.md says more."""
