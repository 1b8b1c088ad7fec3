"""Vote files in and out."""
