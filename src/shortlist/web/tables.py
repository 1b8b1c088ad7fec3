"""The web service's own tables, in the same database as the studies. Made by migration 0003."""

from sqlalchemy import Boolean, Column, Float, LargeBinary, MetaData, String, Table, Text

from shortlist.study.schema import number

tables = MetaData()
sheets = Table(
    "web_sheets", tables,
    Column("study", number, primary_key=True, autoincrement=False),
    Column("body", Text),
    Column("closed", Boolean),
)  # fmt: skip
judges = Table(
    "web_judges", tables,
    Column("id", number, primary_key=True),
    Column("study", number),
    Column("name", String(100)),
    Column("created", Float),
)  # fmt: skip
tokens = Table(
    "web_tokens", tables,
    Column("id", String(24), primary_key=True),
    Column("hash", String(64)),
    Column("kind", String(20)),
    Column("study", number),
    Column("judge", number),
    Column("created", Float),
    Column("expires", Float),
    Column("revoked", Boolean),
)  # fmt: skip
uploads = Table(
    "web_uploads", tables,
    Column("id", String(24), primary_key=True),
    Column("study", number),
    Column("type", String(40)),
    Column("data", LargeBinary),
    Column("created", Float),
)  # fmt: skip
marks = Table(
    "web_marks", tables,
    Column("study", number, primary_key=True, autoincrement=False),
    Column("votes", number, primary_key=True, autoincrement=False),
    Column("error_bound", Float),
)  # fmt: skip
