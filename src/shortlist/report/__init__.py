"""The report: a study or a vote file as one HTML file that loads nothing."""
