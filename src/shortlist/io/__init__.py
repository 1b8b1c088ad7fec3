"""Vote files in and out; worlds by name or from files."""
