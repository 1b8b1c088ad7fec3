"""The tables of a database and their version. `migrations/versions` makes the same tables step by step."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    text,
)

HEAD = "0001"  # the newest of migrations/versions

tables = MetaData()
number = BigInteger().with_variant(Integer, "sqlite")
studies = Table(
    "studies", tables,
    Column("id", number, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("spec", Text, nullable=False),
    Column("created", Float, nullable=False),
)  # fmt: skip
events = Table(
    "events", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("number", number, primary_key=True, autoincrement=False),
    Column("kind", String(20), nullable=False),
    Column("body", Text, nullable=False),
    Column("at", Float, nullable=False),
)  # fmt: skip
snapshots = Table(
    "snapshots", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("number", number, nullable=False),
    Column("data", LargeBinary, nullable=False),
)  # fmt: skip
answers = Table(
    "answers", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("digest", String(32), primary_key=True),  # of the next six: names can be longer than an index can hold
    Column("judge", Text, nullable=False),
    Column("case", Text),
    Column("first", Text, nullable=False),
    Column("second", Text, nullable=False),
    Column("shown", String(32), nullable=False),
    Column("question", number),
    Column("outcome", Float, nullable=False),
    Column("at", Float, nullable=False),
)  # fmt: skip
runs = Table(
    "runs", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("run", String(200), primary_key=True),
    Column("seen", Float, nullable=False),
)  # fmt: skip

displays = Table(
    "web_displays", tables,
    Column("study", ForeignKey("studies.id"), primary_key=True),
    Column("body", Text, nullable=False),
    Column("closed", Boolean, nullable=False),
)  # fmt: skip
judges = Table(
    "web_judges", tables,
    Column("id", number, primary_key=True),
    Column("study", ForeignKey("studies.id"), nullable=False),
    Column("name", String(100), nullable=False),
    Column("created", Float, nullable=False),
    UniqueConstraint("study", "name"),
)  # fmt: skip
tokens = Table(
    "web_tokens", tables,
    Column("id", String(24), primary_key=True),
    Column("hash", String(64), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("study", ForeignKey("studies.id")),
    Column("judge", ForeignKey("web_judges.id")),
    Column("created", Float, nullable=False),
    Column("expires", Float),
    Column("revoked", Boolean, nullable=False),
    Index("web_tokens_of_judge", "judge"),
)  # fmt: skip
uploads = Table(
    "web_uploads", tables,
    Column("id", String(24), primary_key=True),
    Column("study", ForeignKey("studies.id")),
    Column("type", String(40), nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("created", Float, nullable=False),
)  # fmt: skip


def has_tables(engine: Engine) -> bool:
    return inspect(engine).has_table("alembic_version")


def schema_version(engine: Engine) -> str | None:
    if not has_tables(engine):
        return None
    with engine.connect() as connection:
        found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found


def upgrade(engine: Engine, version: str = HEAD) -> None:
    """Bring the tables to this version."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "shortlist.study:migrations")
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.execute(text("BEGIN IMMEDIATE"))
        else:
            connection.execute(text("SELECT pg_advisory_xact_lock(73501)"))
        if not inspect(connection).has_table("alembic_version") or _version(connection) != version:
            config.attributes["connection"] = connection
            command.upgrade(config, version)
        connection.commit()


def _version(connection: Connection) -> str | None:
    found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found
