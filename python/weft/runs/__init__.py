"""Runs, for every command: what one is, doing it here or on a cluster, and the store that keeps it."""
