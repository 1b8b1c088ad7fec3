"""Experiments as data: sweeps in TOML, runs that can be stopped and gone on with, tables and figures."""
