"""What the web service keeps beside the studies: what judges are shown, who they are, tokens, uploads, the past."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "web_sheets",
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("closed", sa.Boolean, nullable=False),
    )
    op.create_table(
        "web_judges",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.UniqueConstraint("study", "name"),
    )
    op.create_table(
        "web_tokens",
        sa.Column("id", sa.String(24), primary_key=True),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id")),
        sa.Column("judge", NUMBER, sa.ForeignKey("web_judges.id")),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("expires", sa.Float),
        sa.Column("revoked", sa.Boolean, nullable=False),
    )
    op.create_index("web_tokens_of_judge", "web_tokens", ["judge"])
    op.create_table(
        "web_uploads",
        sa.Column("id", sa.String(24), primary_key=True),
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id")),
        sa.Column("type", sa.String(40), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.create_table(
        "web_marks",
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("votes", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("error_bound", sa.Float, nullable=False),
    )
