"""Judging on the web: app.py puts it together, serve.py runs it, routes/ answers requests."""
