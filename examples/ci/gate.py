"""Fail a build unless an item is among the best k.

    python gate.py "new prompt" --config shortlist.toml

The first argument is the item, the rest are options of `shortlist run`. Exit codes: 0 the item is proved to be in the
top k, 1 it is proved to be out, 3 neither is proved, 2 wrong input, 4 the judge or the storage failed.
"""

import json
import subprocess
import sys

item, *options = sys.argv[1:]
done = subprocess.run([sys.executable, "-m", "shortlist", "run", *options, "--json"], stdout=subprocess.PIPE, text=True)
if done.returncode not in (0, 3):
    sys.exit(done.returncode)
found = json.loads(done.stdout)
if item not in found["utilities"]:
    print(f"there is no item {item!r}; there are {', '.join(found['utilities'])}", file=sys.stderr)
    sys.exit(2)
if item in found["certainly_in"]:
    print(f"{item!r} is in the top {len(found['top'])}: {', '.join(found['top'])}")
elif item in found["certainly_out"]:
    sys.exit(f"{item!r} is not in the top {len(found['top'])}: {', '.join(found['top'])}")
else:
    print(f"nothing is proved about {item!r} after {found['votes']} votes", file=sys.stderr)
    sys.exit(3)
