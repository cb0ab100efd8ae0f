"""Campaigns that take hours; results are committed with the digest of the build they are of."""
