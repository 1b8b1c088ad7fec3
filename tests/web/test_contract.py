"""Every operation of /openapi.json against good and bad requests: no 5xx, no answer that is not in the contract."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.web.server import Owner, Unlimited, owner_key, take

# Random examples per operation, beside the limits of every field, which are always tried.
EXAMPLES = [pytest.param(5, marks=pytest.mark.slow), pytest.param(40, marks=pytest.mark.sweep)]
PATHS = {
    "owner": ["--exclude-path-regex", "/api/sessions"],  # who leaves is refused everything else
    "judge": ["--include-path-regex", "(questions|show|vote|undo|leave|/me)"],
    "leaver": ["--include-path-regex", "/api/sessions"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A service of its own: here anything may be created and closed."""
    folder = tmp_path_factory.mktemp("contract")
    server = Unlimited(f"sqlite:///{folder / 's.db'}", folder).start()
    owner = Owner(server, owner_key(server, server.new_owner_link().partition("#")[2]))
    owner.create("demo", ["ant", "bee", "cat", "dog"])
    (judge,) = owner.judges("demo", "Ann")
    take(judge, "demo", 5)
    leaver = owner.http.post("/api/keys").json()["key"]
    yield server, {
        "owner": owner.key, "judge": judge.headers["authorization"].removeprefix("Bearer "), "leaver": leaver,
    }  # fmt: skip
    owner.close()
    server.end()


@pytest.mark.parametrize("examples", EXAMPLES)
@pytest.mark.parametrize("who", PATHS)
def test_every_answer_is_in_the_contract(place, tmp_path, who, examples):
    server, tokens = place
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(config), "run",
        f"{server.base}/openapi.json", "-H", f"Authorization: Bearer {tokens[who]}", "--max-examples", str(examples),
        "--seed", "1", "--generation-database", "none", *PATHS[who],
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


# What the schema cannot say (k below the number of items, names that differ) is refused with 422, as documented; a body
# that is too big is refused with 413 before anybody looks into it.
CONFIG = """
[checks]
positive_data_acceptance.enabled = false
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 409, 413, 422]

[parameters]
"path.name" = "demo"
"path.id" = "demo.0"

[[operations]]  # the same request each time, and it takes seconds
include-path = "/api/studies/{name}/report.html"
phases.fuzzing.enabled = false
phases.stateful.enabled = false

[[operations]]  # a stream without an end
include-path = "/api/studies/{name}/news"
enabled = false
"""
