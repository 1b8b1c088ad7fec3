"""Studies: the loop with named items, pending questions, and answers in any order."""
