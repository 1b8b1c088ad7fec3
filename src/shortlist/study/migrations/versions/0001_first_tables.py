"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "studies",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.create_table(
        "records",
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("number", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("question", NUMBER),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_index("records_of_question", "records", ["study", "question"])
    op.create_table(
        "snapshots",
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
