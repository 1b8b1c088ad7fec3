"""Errors of experiments. The command prints their message as one line and exits with code 2."""

from shortlist.errors import BadInput, ShortlistError


class BadExperiment(BadInput):
    """An unknown experiment or cell, or results on disk that do not fit it."""


class RunsFailed(ShortlistError):
    """An experiment stopped before its last run. The finished runs are saved."""
