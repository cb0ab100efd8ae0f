#!/bin/sh
# PMDK's pools: pmempool's check.
pmempool check -v "$1"
