"""What there is to say about a study or a file of votes, as plain numbers: for reports, plots and pages to show."""
