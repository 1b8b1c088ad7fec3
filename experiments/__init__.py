"""Reproducible experiments: sweeps in TOML files, resumable runs, tables and figures. Run `python -m experiments`."""
