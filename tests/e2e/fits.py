#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""fits.py - does JSON fit its schema, and is the schema strict?

usage: fits.py SCHEMA [FILE]...    each FILE is one value, or with the name
                                   *.jsonl one a line; - is standard input
       fits.py --strict SCHEMA...  each is a schema, and lets nothing through
                                   that it does not name

Says what does not fit, and where; ends with 1 then.
"""
import json
import sys

from jsonschema import Draft202012Validator as Validator
from jsonschema.exceptions import best_match


def values(path):
    """Each value of a file with its name."""
    with sys.stdin if path == "-" else open(path, encoding="utf-8") as file:
        if not path.endswith(".jsonl"):
            yield path, json.load(file)
            return
        for number, line in enumerate(file, 1):
            yield f"{path}:{number}", json.loads(line)


def branch_of(schema, value):
    """Of a choice among objects that a constant tells apart, the one that is
    meant, for its errors say more than that none fits."""
    for one in schema.get("oneOf", []):
        event = one.get("properties", {}).get("event", {})
        if "const" in event and event["const"] == value.get("event"):
            return {"$defs": schema.get("$defs", {}), **one}
    return schema


def misfits(schema, path):
    for name, value in values(path):
        error = best_match(
            Validator(branch_of(schema, value)).iter_errors(value))
        if error is not None:
            yield f"{name}: {error.json_path}: {error.message}"


def loose(schema, where="$"):
    """Places of a schema at which objects may have members without a name."""
    if isinstance(schema, list):
        for i, part in enumerate(schema):
            yield from loose(part, f"{where}[{i}]")
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object" and "additionalProperties" not in schema:
        yield where
    for key, part in schema.items():
        yield from loose(part, f"{where}.{key}")


def main(args):
    said = []
    if args[0] == "--strict":
        for path in args[1:]:
            schema = json.load(open(path, encoding="utf-8"))
            Validator.check_schema(schema)
            said += [f"{path}: {where}: anything may be added"
                     for where in loose(schema)]
    else:
        schema = json.load(open(args[0], encoding="utf-8"))
        for path in args[1:] or ["-"]:
            said += misfits(schema, path)
    print("\n".join(said), end="\n" if said else "", file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
