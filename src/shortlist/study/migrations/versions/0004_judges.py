"""Judges: pseudonyms that votes are stored under, open links with limits, conflicts of interest, notes."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0001"

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column("web_judges", sa.Column("key", sa.String(100), nullable=False, server_default=""))
    op.execute("UPDATE web_judges SET key = name")  # the votes of these judges are stored under their names
    op.add_column("web_judges", sa.Column("email", sa.String(200)))
    op.add_column("web_judges", sa.Column("state", sa.String(20), nullable=False, server_default="active"))
    op.add_column("web_judges", sa.Column("is_open", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_index("web_judges_by_key", "web_judges", ["study", "key"], unique=True)
    op.create_table(
        "web_invitations",
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("code", sa.String(40)),
        sa.Column("max_judges", sa.Integer),
        sa.Column("max_votes", sa.Integer),
        sa.Column("approve", sa.Boolean, nullable=False),
    )
    op.create_table(
        "web_conflicts",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), nullable=False),
        sa.Column("judge", NUMBER, sa.ForeignKey("web_judges.id"), nullable=False),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("declared", sa.Boolean, nullable=False),
    )
    op.create_index("web_conflicts_of_judge", "web_conflicts", ["judge"])
    op.create_table(
        "web_notes",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), nullable=False),
        sa.Column("judge", NUMBER, sa.ForeignKey("web_judges.id"), nullable=False),
        sa.Column("question", NUMBER, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.create_index("web_notes_of_study", "web_notes", ["study", "question"])
