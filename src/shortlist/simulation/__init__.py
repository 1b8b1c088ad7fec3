"""Simulated studies in known worlds."""
