"""What judges said: their replies in full, with tokens and costs, and the texts that they were shown."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "replies",
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("digest", sa.String(32), primary_key=True),
        sa.Column("question", NUMBER, nullable=False),
        sa.Column("judge", sa.Text, nullable=False),
        sa.Column("member", sa.Text, nullable=False),
        sa.Column("case", sa.Text),
        sa.Column("first", sa.Text, nullable=False),
        sa.Column("second", sa.Text, nullable=False),
        sa.Column("outcome", sa.Float),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("request", sa.String(32), nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("text", sa.Text),
        sa.Column("reasoning", sa.Text),
        sa.Column("prompt_tokens", NUMBER, nullable=False),
        sa.Column("cached_tokens", NUMBER, nullable=False),
        sa.Column("completion_tokens", NUMBER, nullable=False),
        sa.Column("cost", sa.Float),
        sa.Column("first_text", sa.String(32)),
        sa.Column("second_text", sa.String(32)),
        sa.Column("case_text", sa.String(32)),
    )
    op.create_table(
        "texts",
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("digest", sa.String(32), primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
    )
