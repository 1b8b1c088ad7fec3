"""Run by alembic, inside the transaction of `shortlist.study.sql.upgrade`."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], version_table=context.config.attributes["table"])
context.run_migrations()
