"""The first tables: studies, what runs keep, and the tables of the web service."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _create_study_tables()
    _create_run_tables()
    _create_reply_tables()
    _create_web_tables()
    _create_judge_tables()


def _create_study_tables() -> None:
    op.create_table(
        "studies",
        sa.Column("id", NUMBER, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("number", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
    )
    op.create_table(
        "snapshots",
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("number", NUMBER, nullable=False),
        sa.Column("head", sa.String(64), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )


def _create_run_tables() -> None:
    op.create_table(
        "answers",
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("digest", sa.String(32), primary_key=True),
        sa.Column("judge", sa.Text, nullable=False),
        sa.Column("case", sa.Text),
        sa.Column("first", sa.Text, nullable=False),
        sa.Column("second", sa.Text, nullable=False),
        sa.Column("shown", sa.String(32), nullable=False),
        sa.Column("question", NUMBER),
        sa.Column("outcome", sa.Float, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("study", NUMBER, sa.ForeignKey("studies.id"), primary_key=True),
        sa.Column("run", sa.String(200), primary_key=True),
        sa.Column("until", sa.Float, nullable=False),
    )


def _create_reply_tables() -> None:
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


def _create_web_tables() -> None:
    op.create_table(
        "web_displays",
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
        sa.Column("key", sa.String(100), nullable=False),
        sa.Column("email", sa.String(200)),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("is_open", sa.Boolean, nullable=False),
        sa.UniqueConstraint("study", "name"),
    )
    op.create_index("web_judges_by_key", "web_judges", ["study", "key"], unique=True)
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


def _create_judge_tables() -> None:
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
