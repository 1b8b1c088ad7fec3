"""The command line: parse arguments, call the library, print the result."""

from shortlist.cli.app import main

__all__ = ["main"]
