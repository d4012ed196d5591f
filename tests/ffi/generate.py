#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes table.py, libxrun's public headers as ctypes sees them.

    generate.py >table.py

clang 19 reads the headers, so that nothing is guessed from their text; numbers
of macros, and where the members of each struct lie, a program of its own tells.
The table is not printed if ctypes would lay a struct out in another way.
"""
import ctypes
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
INCLUDE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "include")
CLANG = ["clang-19", "-x", "c", "-std=gnu17", "-I", INCLUDE]

PLAIN = {
    "void": "None", "_Bool": "c_bool", "bool": "c_bool", "char": "c_char",
    "int": "c_int", "double": "c_double", "size_t": "c_size_t",
}
for bits in (8, 16, 32, 64):
    for sign in ("int", "uint"):
        PLAIN[f"{sign}{bits}_t"] = f"c_{sign}{bits}"


class Types:
    """What is declared, and what a C type is called in the table."""

    def __init__(self):
        self.complete = {}      # a struct or union: its members
        self.opaque = set()     # structs that only pointers lead to
        self.callbacks = {}     # a typedef of a function type: its text
        self.numbers = {}       # a typedef of a number: its text

    def of(self, text):
        text = re.sub(r"\b(const|volatile|restrict)\b", "", text).strip()
        text = re.sub(r"\s+", " ", text)
        text = re.sub(r"\s*\*", "*", text).replace("* ", "*")
        array = re.fullmatch(r"(.*)\[(\d+)\]", text)
        if array:
            return f"{self.of(array[1])} * {array[2]}"
        pointer = re.fullmatch(r"(.*)\(\*\)(\(.*\))", text)
        if pointer:
            return self.function(pointer[1] + pointer[2])
        if text.endswith("*"):
            return self.pointer(text[:-1].strip())
        if text.startswith("enum "):
            return "c_int"
        for kind in ("struct ", "union "):
            if text.startswith(kind):
                return text[len(kind):]
        return PLAIN.get(text) or self.of(self.numbers[text])

    def pointer(self, to):
        if to in ("char", "void"):
            return f"c_{to}_p"
        if to in self.callbacks:
            return to
        name = to.removeprefix("struct ")
        if re.fullmatch(r"struct \w+", to) and name not in self.complete:
            self.opaque.add(name)
            return f"{name}_p"
        return f"POINTER({self.of(to)})"

    def function(self, text):
        """RESULT (ARGUMENT, ...) as a prototype of a callback."""
        result, arguments = split_function(text)
        return ", ".join(["CFUNCTYPE(" + self.of(result)] +
                         [self.of(a) for a in arguments]) + ")"


def split_function(text):
    """The result, and the arguments, some of which may be functions."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if depth == 0:
            break
    arguments, word = [], ""
    for c in text[at + 1:-1]:
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            arguments.append(word)
            word = ""
        else:
            word += c
    arguments.append(word)
    return text[:at].strip(), [a.strip() for a in arguments
                               if a.strip() != "void"]


def run(argv, text):
    done = subprocess.run(argv, input=text, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"generate.py: {argv[0]}: {done.stderr.strip()}")
    return done.stdout


def includes():
    files = sorted(glob.glob(os.path.join(INCLUDE, "xrun", "*.h")))
    return "".join(f"#include <xrun/{os.path.basename(f)}>\n" for f in files)


def macros(source):
    """Those that are a number, and those that are a text."""
    numbers, texts = [], {}
    for line in run(CLANG + ["-dM", "-E", "-"], source).splitlines():
        found = re.fullmatch(r"#define (XR_[A-Z0-9_]+) (.+)", line)
        if not found or found[2].startswith("{"):
            continue
        if found[2].startswith('"'):
            texts[found[1]] = found[2].strip('"')
        else:
            numbers.append(found[1])
    return sorted(numbers), texts


def members(node, types):
    """Names and types; a union without a name is a struct's own."""
    fields, inner = [], None
    for part in node.get("inner", []):
        if part["kind"] == "RecordDecl":
            inner = f"{node['name']}_{part['tagUsed']}"
            types.complete[inner] = members({**part, "name": inner}, types)
            types.complete[inner]["union"] = part["tagUsed"] == "union"
        elif part["kind"] == "FieldDecl" and "name" in part:
            fields.append((part["name"], part["type"]["qualType"]))
        elif part["kind"] == "FieldDecl":
            fields.append(("_", f"union {inner}"))
    return {"fields": fields, "union": node.get("tagUsed") == "union"}


def constants(node):
    """An enum's; one without a number has that of the one before and 1."""
    value = -1
    for part in node.get("inner", []):
        if part["kind"] != "EnumConstantDecl":
            continue
        said = [i["value"] for i in part.get("inner", []) if "value" in i]
        value = int(said[0]) if said else value + 1
        yield part["name"], value


def declarations(source, types):
    """Functions, and numbers of enums; the rest is put into @types."""
    tree = json.loads(run(CLANG + ["-fsyntax-only", "-Xclang",
                                   "-ast-dump=json", "-"], source))
    functions, numbers = {}, {}
    for node in tree["inner"]:
        name = node.get("name", "")
        if node["kind"] == "EnumDecl" and name.startswith("xr_"):
            numbers[name] = dict(constants(node))
        if not name.startswith("xr_"):
            continue
        if node["kind"] == "RecordDecl" and node.get("completeDefinition"):
            types.complete[name] = members(node, types)
        elif node["kind"] == "FunctionDecl":
            functions[name] = node["type"]["qualType"]
        elif node["kind"] == "TypedefDecl":
            text = node["type"]["qualType"]
            place = types.callbacks if text.endswith(")") else types.numbers
            place[name] = text
    return functions, numbers


def ask(source, names, types):
    """The numbers of macros, and sizes and offsets of structs."""
    lines = [f'printf("{n} %lld\\n", (long long)({n}));' for n in names]
    for name, record in types.complete.items():
        if "_union" in name or record["union"]:
            continue
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        lines += [f'printf("{name}.{field} %zu\\n", '
                  f'__builtin_offsetof(struct {name}, {field}));'
                  for field, _ in record["fields"] if field != "_"]
    text = source + "#include <stdio.h>\nint main(void)\n{\n" + \
        "\n".join(lines) + "\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "ask")
        run(CLANG + ["-w", "-o", program, "-"], text)
        said = subprocess.run([program], text=True, capture_output=True,
                              check=True).stdout
    return {line.split()[0]: int(line.split()[1]) for line in said.splitlines()}


def fold(head, items, tail):
    """A row, on as many lines as it takes."""
    lines, line = [], head
    for i, item in enumerate(items):
        word = item + (tail if i == len(items) - 1 else ",")
        if len(line) + 1 + len(word) > 79:
            lines.append(line)
            line = " " * 8 + word
        else:
            line += ("" if line.endswith("(") else " ") + word
    return lines + [line]


def render(types, functions, enums, values, texts):
    out = ["# SPDX-License-Identifier: Apache-2.0",
           '"""libxrun\'s public headers, for ctypes: made by generate.py from',
           'src/include/xrun, never written by hand.',
           "",
           "A pointer to a struct that only the library knows is a number, named for",
           "the struct: xr_value_p.",
           '"""',
           "# pylint: disable=all",
           "from ctypes import (CFUNCTYPE, POINTER, Structure, Union, c_bool, c_char,",
           "                    c_char_p, c_double, c_int, c_int32, c_int64, c_size_t,",
           "                    c_uint8, c_uint16, c_uint32, c_uint64, c_void_p)",
           ""]
    body = []
    callbacks = {n: types.function(t) for n, t in types.callbacks.items()}
    body += ["", "# Structs, whose members follow."]
    for name, record in types.complete.items():
        body += ["", "", f"class {name}({'Union' if record['union'] else 'Structure'}):",
                 "    pass"]
    body += ["", "", "# Functions of the program's that the library calls."]
    for name, text in callbacks.items():
        body += fold(f"{name} = CFUNCTYPE(",
                     split_prototype(text), ")")
    body += ["", "# Members of structs."]
    for name, record in types.complete.items():
        if any(f == "_" for f, _ in record["fields"]):
            body.append(f'{name}._anonymous_ = ("_",)')
        body.append(f"{name}._fields_ = [")
        body += [line for field, text in record["fields"]
                 for line in fold(f'    ("{field}",',
                                  [types.of(text)], "),")]
        body.append("]")
    body += ["", "# A function: what it gives, and what it takes.", "FUNCTIONS = {"]
    for name in sorted(functions):
        result, arguments = split_function(functions[name])
        items = [types.of(a) for a in arguments]
        body += fold(f'    "{name}": ({types.of(result)}, (', items or [""],
                     ",))," if items else ")),")
    body += ["}", "", "# Numbers."]
    for enum, rows in enums.items():
        body += [f"# enum {enum}"] + [f"{n} = {v}" for n, v in rows.items()]
    body += ["# macros"] + [f"{n} = {v}" for n, v in sorted(values.items())]
    body += [f'{n} = b"{t}"' for n, t in sorted(texts.items())]
    out += [f"{name}_p = c_void_p" for name in sorted(types.opaque)]
    return "\n".join(out + body) + "\n"


def split_prototype(text):
    """The parts of CFUNCTYPE(A, B(C, D), E)."""
    _, parts = split_function(text)
    return parts


def compare(table, told):
    """Do all structs lie as the compiler has them?"""
    space = {}
    exec(compile(table, "table.py", "exec"), space)
    for key, number in told.items():
        name, _, field = key.partition(".")
        if name not in space:
            continue
        here = getattr(space[name], field).offset if field else \
            ctypes.sizeof(space[name])
        if here != number:
            sys.exit(f"generate.py: {key}: {here} with ctypes, {number} in C")


def main():
    source = includes()
    types = Types()
    functions, enums = declarations(source, types)
    names, texts = macros(source)
    told = ask(source, names, types)
    values = {n: told.pop(n) for n in names}
    table = render(types, functions, enums, values, texts)
    compare(table, told)
    sys.stdout.write(table)


if __name__ == "__main__":
    main()
