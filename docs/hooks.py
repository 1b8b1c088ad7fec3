"""What MkDocs cannot find by itself: the command line and HTTP references, and links that leave the docs folder."""

import posixpath
import re
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from mkdocs.exceptions import PluginError

import shortlist
from shortlist.cli.app import app
from shortlist.web.app import create_app

COMMANDS = "<!-- generated: commands -->"
OPERATIONS = "<!-- generated: operations -->"
NAMES = "<!-- generated: names -->"
CHAPTERS = {
    "study": "Studies",
    "judges": "Judges",
    "outputs": "Outputs",
    "votes": "Vote files",
    "report": "Reports",
    "core": "Estimates and certificates",
    "core.sampling": "Sampling rules",
    "core.stopping": "Stopping rules",
    "simulation": "Simulation",
    "errors": "Errors",
}
JSON = "application/json"
LOAD = re.compile(
    r"""<(?:script|img|iframe|source|video)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*\bhref=["']?(?:https?:)?//"""
    r"""|url\(["']?(?:https?:)?//|@import ["'](?:https?:)?//|importScripts\(["']https?:|https://(?:unpkg|cdn|fonts)\b"""
)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, command_line())
    if OPERATIONS in markdown:
        markdown = markdown.replace(OPERATIONS, operations(contract()))
    if NAMES in markdown:
        markdown = markdown.replace(NAMES, public_names())
    return keep_links_inside(markdown, page.file.src_uri)


def on_post_build(*, config: Any, **_: Any) -> None:
    """The theme can load a diagram library and a polyfill from a package host. These pages need neither."""
    for script in Path(config.site_dir, "assets", "javascripts").glob("bundle.*.js"):
        script.write_text(script.read_text().replace("https://unpkg.com/", "not-loaded/"))
    if found := loads_from_elsewhere(Path(config.site_dir)):
        raise PluginError(f"these files would load something from another machine: {', '.join(found)}")


def loads_from_elsewhere(site: Path) -> list[str]:
    files = [file for file in site.rglob("*.*") if file.suffix in (".html", ".css", ".js")]
    return [str(file.relative_to(site)) for file in files if LOAD.search(file.read_text())]


def keep_links_inside(markdown: str, source: str) -> str:
    """Links to files of the repository that are not part of the site become plain text."""

    def kept(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[2]))
        return link[1] if target.startswith("..") else link[0]

    return re.sub(r"(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)\s]+)\)", kept, markdown)


def public_names() -> str:
    """A chapter for each part of the package, functions first; the text comes from the docstrings."""
    found: dict[str, list[str]] = {chapter: [] for chapter in CHAPTERS}
    for name in sorted(shortlist.__all__, key=lambda name: (name[0].isupper(), name)):
        part = getattr(shortlist, name).__module__.removeprefix("shortlist.")
        found[max((chapter for chapter in CHAPTERS if part.startswith(chapter)), key=len)].append(name)
    chapters = [(title, found[chapter]) for chapter, title in CHAPTERS.items() if found[chapter]]
    return "\n\n".join(
        f"## {title}\n\n" + "\n\n".join(f"::: shortlist.{name}" for name in names) for title, names in chapters
    )


def command_line() -> str:
    root: Any = typer.main.get_command(app)
    return "\n\n".join(section for path, command in walk(root, ("shortlist",)) for section in describe(path, command))


def walk(command: Any, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    """Every command that is not a group, with the words that call it."""
    if not hasattr(command, "list_commands"):
        return [(path, command)]
    context = typer.Context(command)
    names = command.list_commands(context)
    return [found for name in names for found in walk(command.get_command(context, name), (*path, name))]


def describe(path: tuple[str, ...], command: Any) -> list[str]:
    context = typer.Context(command)
    records = [parameter.get_help_record(context) for parameter in command.params]
    rows = [row(f"`{name}`", text) for name, text in filter(None, records)]
    usage = " ".join((*path, *command.collect_usage_pieces(context)))
    table = "\n".join(["| argument or option | |", "|---|---|", *rows]) if rows else ""
    return [f"## {' '.join(path)}", command.help, f"```text\n{usage}\n```", table]


def contract() -> dict[str, Any]:
    with TemporaryDirectory() as folder, chdir(folder):  # the service makes a storage where it starts
        return create_app().openapi()


def operations(contract: dict[str, Any]) -> str:
    listed = [
        (operation["tags"][0], method, path, operation)
        for path, methods in contract["paths"].items()
        for method, operation in methods.items()
    ]
    parts: list[str] = []
    for tag in dict.fromkeys(tag for tag, *_ in listed):
        parts.append(f"## {tag.capitalize()}")
        parts += [operate(method, path, operation) for kind, method, path, operation in listed if kind == tag]
    schemas = contract["components"]["schemas"].items()
    shapes = [shape(name, schema) for name, schema in schemas if not name.startswith("Body_")]  # a form, not JSON
    return "\n\n".join([*parts, "## Objects", *shapes])


def operate(method: str, path: str, operation: dict[str, Any]) -> str:
    lines = [f"### `{method.upper()} {path}`", operation.get("description", operation["summary"])]
    parameters = [
        row(f"`{one['name']}`", one["in"], kind_of(one["schema"]), one.get("description", ""))
        for one in operation.get("parameters", [])
    ]
    if parameters:
        lines.append("\n".join(["| parameter | in | type | |", "|---|---|---|---|", *parameters]))
    if "requestBody" in operation:
        lines.append(f"Body: {body_of(operation['requestBody'])}.")
    good = [f"`{code}` {body_of(answer)}".strip() for code, answer in operation["responses"].items() if code < "400"]
    bad = sorted(code for code in operation["responses"] if code >= "400")
    lines.append(f"Returns {', '.join(good)}. Errors: {', '.join(f'`{code}`' for code in bad)}.")
    return "\n\n".join(lines)


def body_of(part: dict[str, Any]) -> str:
    content = part.get("content", {})
    return ", ".join(kind_of(found["schema"]) if kind == JSON else f"`{kind}`" for kind, found in content.items())


def shape(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    rows = [
        row(f"`{field}`", kind_of(found), "yes" if field in required else "", found.get("description", ""))
        for field, found in schema.get("properties", {}).items()
    ]
    lines = [f"### {name}", schema.get("description", "")]
    if "enum" in schema:
        lines.append(kind_of(schema))
    if rows:
        lines.append("\n".join(["| field | type | required | |", "|---|---|---|---|", *rows]))
    return "\n\n".join(lines)


def kind_of(schema: dict[str, Any]) -> str:
    """A JSON schema in a few words, with a link where it is an object of the contract."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(kind_of(one) for one in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def row(*cells: str) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"
