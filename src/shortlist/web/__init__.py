"""Judging on the web: `app.py` assembles the service, `serve.py` runs it, `routes/` answers requests."""
