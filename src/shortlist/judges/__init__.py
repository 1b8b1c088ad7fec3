"""Judges: functions, commands, language models, recorded votes; and the runner that lets one answer a study."""
