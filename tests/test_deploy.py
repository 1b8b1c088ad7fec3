"""The files in deploy/ call the service as it is, and keep it away from what it does not need."""

import re
from pathlib import Path

import typer
import yaml

from shortlist.cli.serve import serve

DEPLOY = Path(__file__).parent.parent / "deploy"


def options():
    app = typer.Typer()
    app.command()(serve)
    return {name for parameter in typer.main.get_command(app).params for name in parameter.opts}


def test_every_option_is_one_of_the_service():
    unit = re.search(r"^ExecStart=.* serve (.*)$", (DEPLOY / "shortlist.service").read_text(), re.MULTILINE)[1]
    image = " ".join(re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE))
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for text in (unit, image, " ".join(services["shortlist"]["command"])):
        used = set(re.findall(r"(?<![\w-])--[a-z-]+", text))
        assert used
        assert used <= options()


def test_the_service_runs_without_privileges():
    image = (DEPLOY / "Containerfile").read_text()
    assert re.search(r"^USER 10001$", image, re.MULTILINE)
    assert "HEALTHCHECK" in image
    shortlist = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["shortlist"]
    assert shortlist["read_only"]
    assert shortlist["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in shortlist["ports"])
    unit = (DEPLOY / "shortlist.service").read_text()
    assert "DynamicUser=yes" in unit
    assert "NoNewPrivileges=yes" in unit
