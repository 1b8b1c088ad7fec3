"""A study or a vote file in numbers: ranking, error bound, checks, agreement. Reports, plots and pages show them."""

from shortlist.analysis.analysis import Analysis as Analysis
from shortlist.analysis.analysis import analyse_study as analyse_study
from shortlist.analysis.analysis import analyse_votes as analyse_votes
