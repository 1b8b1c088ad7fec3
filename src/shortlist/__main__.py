"""`python -m shortlist` is the `shortlist` command."""

from shortlist.cli import main

main()
