"""Vote files and item files: read, inspect and write them."""
