"""`shortlist run --config FILE`: options from a TOML file. Those on the command line win."""

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from shortlist.errors import BadInput
from shortlist.study.events import Configured, fingerprint
from shortlist.study.schema import shown
from shortlist.study.study import Study

NOT_IN_A_FILE = ("config", "help")
SECRET = re.compile(r"auth|key|secret|password|cookie", re.IGNORECASE)
WITH_NAMES = {"header": ":", "query": "=", "option": "="}  # options of the form NAME: VALUE


def take_config(context: typer.Context, path: Path | None) -> Path | None:
    """Let the options that are not given on the command line have the values of the file."""
    if path is not None and not context.resilient_parsing:
        context.default_map = {**(context.default_map or {}), **_options(path, context.command.params)}
    return path


CONFIG = typer.Option(
    None,
    metavar="FILE",
    is_eager=True,
    callback=take_config,
    help="TOML file with options by their names, such as shortlist.toml. An option given here wins over the file.",
)


def record_config(study: Study, path: Path | None) -> str | None:
    """Keep the digest of the file with the study. Returns a note if an earlier run had another file."""
    if path is None:
        return None
    digest, earlier = fingerprint(path.read_text(encoding="utf-8")), study.setups.configs
    if earlier[-1:] == (digest,):
        return None
    study.record([Configured(digest)])
    return f"{path} is not what the last run with a file had; both digests are kept" if earlier else None


def _options(path: Path, params: list[Any]) -> dict[str, Any]:
    by_name = {name: param for param in params for name in _names(param) if name not in NOT_IN_A_FILE}
    found: dict[str, Any] = {}
    for name, value in _pairs(_read(path), path):
        plain = name.replace("_", "-")
        if plain not in by_name:
            raise BadInput(f"{path}: there is no option {name!r}; {_hint(plain, list(by_name))}")
        param = by_name[plain]
        if param.name in found:
            raise BadInput(f"{path}: {name!r} is given twice")
        found[param.name] = _value(path, plain, value, param)
    return found


def _names(param: Any) -> list[str]:
    """How an option, or the argument, is called in a file."""
    return [option.lstrip("-").replace("_", "-") for option in param.opts]


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as reason:
        raise BadInput(f"cannot read {path}: {reason.strerror}") from None
    except ValueError as reason:
        raise BadInput(f"{path} is not TOML: {reason}") from None


def _pairs(values: Mapping[str, Any], path: Path) -> list[tuple[str, Any]]:
    """Names and values. Tables only group them."""
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        found += value.items() if isinstance(value, dict) else [(name, value)]
    if nested := [name for name, value in found if isinstance(value, dict)]:
        raise BadInput(f"{path}: {nested[0]!r} is a table inside a table; write options in tables of one level")
    return found


def _hint(name: str, known: list[str]) -> str:
    if SECRET.search(name):
        return "a key does not belong in a file; name its environment variable with key-variable"
    close = get_close_matches(name, known, 1)
    return f"did you mean {close[0]!r}?" if close else "names are those of `shortlist run --help`, without the dashes"


def _value(path: Path, name: str, value: Any, param: Any) -> Any:
    is_list, is_switch = getattr(param, "multiple", False) or param.nargs == -1, getattr(param, "is_flag", False)
    parts = value if isinstance(value, list) else [value]
    if any(not isinstance(part, str | int | float) or isinstance(part, bool) != is_switch for part in parts):
        raise BadInput(f"{path}: {name} = {value!r} is not {'true or false' if is_switch else 'a text or a number'}")
    if isinstance(value, list) and not is_list:
        raise BadInput(f"{path}: {name} has one value, not a list")
    for part in map(str, parts):
        _refuse_secrets(path, name, part)
    return [str(part) for part in parts] if is_list else value if is_switch else str(value)


def _refuse_secrets(path: Path, name: str, value: str) -> None:
    title, sign, rest = value.partition(WITH_NAMES.get(name, "\0"))
    is_secret = sign and SECRET.search(title) and not rest.strip().startswith("$")
    if is_secret or (name == "storage" and shown(value) != value):
        raise BadInput(
            f"{path}: {name} has a secret, which does not belong in a file; give it on the command line, or use an "
            "environment variable (key-variable, or $NAME as the value of a header)"
        )
