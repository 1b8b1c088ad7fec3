"""Known answers, and the runs that are at work."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "answers",
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("digest", sa.String(32), primary_key=True),
        sa.Column("judge", sa.Text, nullable=False),
        sa.Column("case", sa.Text),
        sa.Column("first", sa.Text, nullable=False),
        sa.Column("second", sa.Text, nullable=False),
        sa.Column("question", NUMBER),
        sa.Column("outcome", sa.Float, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("sign", sa.String(200), primary_key=True),
        sa.Column("seen", sa.Float, nullable=False),
    )
