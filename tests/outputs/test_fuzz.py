"""Files that are built otherwise than they should be end in a named problem, never in another error."""

import json
import random

import pytest

from shortlist import inspect_outputs
from shortlist.outputs.rows import KINDS
from tests.outputs.samples import SAMPLES

VALUES = [None, True, 3, 2.5, "", "x", [], ["x"], [None], [3], {}, {"x": None}, {"role": "user"}, [{"type": "text"}]]
JSON_SAMPLES = [name for name in SAMPLES if not {"table", "archive", "wide", "folder"} & set(name.split())]


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield from places(inner, (*path, step))


def changed(value, rng):
    """The value with one place replaced or removed."""
    path = rng.choice([path for path in places(value) if path])
    inside = value
    for step in path[:-1]:
        inside = inside[step]
    if rng.random() < 0.3:
        del inside[path[-1]]
    else:
        inside[path[-1]] = rng.choice(VALUES)
    return value


@pytest.mark.parametrize("name", JSON_SAMPLES)
def test_changed_files(tmp_path, name):
    make, _, options, _, _ = SAMPLES[name]
    paths = make(tmp_path)
    files = sorted(file for file in tmp_path.rglob("*") if file.is_file())
    whole = {file: file.read_text() for file in files}
    rng = random.Random(name)
    for _ in range(60):
        file = rng.choice(files)
        if file.suffix == ".json":
            file.write_text(json.dumps(changed(json.loads(whole[file]), rng)))
        else:
            lines = whole[file].splitlines()
            number = rng.randrange(len(lines))
            lines[number] = json.dumps(changed(json.loads(lines[number]), rng))
            file.write_text("\n".join(lines))
        found = inspect_outputs(paths, **options)
        assert {one.name for one in found.problems} <= KINDS.keys()
        assert str(found)
        json.dumps(found.as_dict())
        file.write_text(whole[file])
