"""Judges (functions, commands, language models, recorded votes) and `run_study`, which lets one answer a study."""
