"""Studies: the loop with names for items, questions that are out, and answers in any order."""
