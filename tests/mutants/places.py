# SPDX-License-Identifier: Apache-2.0
"""places.py - places of C code, and the operators that sample applies to them.

The code is split into tokens and not parsed further. All operators work inside of
function bodies: directives, macros, types and tables stay as they are. A mutant has as
many lines as the original, so that line numbers in assertions do not change.
"""
import re
from dataclasses import dataclass

OPERATORS = ("negate", "logic", "off-by-one", "drop", "swap")

TOKEN = re.compile(r"""
    (?P<blank>\s+|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<string>"(?:\\.|[^"\\])*")
  | (?P<char>'(?:\\.|[^'\\])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|[<>=!*/%&|^+-]=|&&|\|\||.)
""", re.X | re.S | re.M)
INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)([uUlL]*)")
NAME = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")
PAIRS = {"(": ")", "[": "]", "{": "}"}
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
ENDS = {"(", "[", "{", ")", "]", "}", ";", ",", "?", ":", "return", "case"} | ASSIGNMENTS
HEADS = {"if", "while", "for", "switch"}
JUMPS = {"return", "break", "continue", "goto"}
TYPES = {"const", "static", "struct", "enum", "union", "unsigned", "signed", "int", "char",
         "long", "short", "bool", "void", "float", "double", "volatile", "register",
         "extern", "typedef", "_Static_assert", "_Alignas"}
BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, order=True)
class Place:
    """text[start:end] becomes @new."""
    start: int
    end: int
    operator: str
    new: str

    def apply(self, text):
        return text[:self.start] + self.new + text[self.end:]

    def line(self, text):
        return text.count("\n", 0, self.start) + 1

    def before(self, text):
        """The lines of the place, as one."""
        first = text.rfind("\n", 0, self.start) + 1
        last = text.find("\n", self.end)
        return " ".join(text[first:last if last != -1 else None].split())

    def after(self, text):
        return Place(self.start, self.start + len(self.new), self.operator,
                     "").before(self.apply(text))


def tokens_of(text):
    return [Token(m.lastgroup, m.group(), m.start(), m.end())
            for m in TOKEN.finditer(text) if m.lastgroup != "blank"]


def partners(tokens):
    """Index of the other bracket, or None if the brackets do not match."""
    other, open_ = {}, []
    for i, t in enumerate(tokens):
        if t.kind != "sign":
            continue
        if t.text in PAIRS:
            open_.append(i)
        elif t.text in PAIRS.values():
            if not open_ or PAIRS[tokens[open_[-1]].text] != t.text:
                return None
            other[i] = open_.pop()
            other[other[i]] = i
    return None if open_ else other


def bodies(tokens, other):
    """(first, last) tokens of each function body. Braces of extern "C" do not count."""
    i, is_table = 0, False
    while i < len(tokens):
        text = tokens[i].text
        if text == "{" and i > 0 and tokens[i - 1].kind == "string":
            yield from ((a + i + 1, b + i + 1) for a, b in bodies(
                tokens[i + 1:other[i]], {k - i - 1: v - i - 1
                                         for k, v in other.items()}))
        elif text == "{" and i > 0 and tokens[i - 1].text == ")" and not is_table:
            yield i + 1, other[i]
        if text == "=":
            is_table = True
        elif text == ";" or text == "{":
            is_table = is_table and text == "{"
        i = other[i] + 1 if text in PAIRS else i + 1


class Body:
    """A function body, and the places in it."""

    def __init__(self, text, tokens, other, first, last):
        self.text, self.tokens, self.other = text, tokens, other
        self.first, self.last = first, last

    def place(self, operator, start, end, new):
        """As many line ends as before: they go behind the new text."""
        lines = self.text.count("\n", start, end) - new.count("\n")
        return Place(start, end, operator, new + "\n" * lines)

    def between(self, first, last):
        return self.text[self.tokens[first].start:self.tokens[last].end]

    def indexes(self):
        return range(self.first, self.last)

    # --- operands -----------------------------------------------------------------

    def left_of(self, i, ends):
        """First token of the operand that ends before token @i."""
        while i > self.first:
            t = self.tokens[i - 1]
            if t.text in (")", "]"):
                at = self.other[i - 1]
                if self.tokens[at - 1].text in HEADS:
                    return i
                i = at
                continue
            if t.text in ENDS or t.text in ends:
                return i
            i -= 1
        return i

    def right_of(self, i, ends):
        """Last token of the operand that begins behind token @i."""
        while i + 1 < self.last:
            t = self.tokens[i + 1]
            if t.text in ("(", "[", "{"):
                i = self.other[i + 1]
                continue
            if t.text in ENDS or t.text in ends:
                return i
            i += 1
        return i

    # --- statements ---------------------------------------------------------------

    def statements(self):
        """(first, last) of each simple statement, its semicolon included."""
        starts, i = [], self.first
        fresh = True
        while i < self.last:
            t = self.tokens[i]
            if fresh and t.text not in ("{", "}", ";"):
                starts.append(i)
                fresh = False
            if t.text in ("{", "}", ";"):
                fresh = True
            elif t.text in ("else", "do"):
                fresh = True
            elif t.text == ":" and self.is_label(i):
                fresh = True
            elif t.text in ("(", "["):
                head = self.tokens[i - 1]
                i = self.other[i]
                follows = self.tokens[i + 1]
                fresh = t.text == "(" and (head.text in HEADS or
                                           (head.kind == "word" and
                                            (follows.kind == "word" or
                                             follows.text == "{")))
            i += 1
        for first in starts:
            last = self.right_of_statement(first)
            if last is not None:
                yield first, last

    def is_label(self, i):
        """case X:, default: and name:, but not the colon of ?:."""
        while i > self.first:
            i -= 1
            if self.tokens[i].text in ("?", "(", "["):
                return False
            if self.tokens[i].text in ("case", "default"):
                return True
            if self.tokens[i].text in (";", "{", "}"):
                return True
        return True

    def right_of_statement(self, i):
        """Its semicolon; None if it has a label or statements inside."""
        head, follows = self.tokens[i], self.tokens[i + 1]
        if head.text in HEADS | {"else", "do", "case", "default"} or \
                follows.text == ":":
            return None
        if head.kind == "word" and head.text not in JUMPS and follows.text == "(" and \
                self.tokens[self.other[i + 1] + 1].kind == "word":
            return None  # LIST_FOREACH(...) statement
        first = i
        while i < self.last:
            t = self.tokens[i]
            if t.text == ";":
                return i
            if t.text in ("(", "["):
                i = self.other[i]
            elif t.text == "{":
                # Not a compound literal and not an initialiser: the block of a macro.
                if self.tokens[i - 1].text not in (")", "=", ",") or \
                        self.is_block(first, i):
                    return None
                i = self.other[i]
            elif t.text == "}":
                return None
            i += 1
        return None

    def is_block(self, first, brace):
        """NAME(...) {, as of LIST_FOREACH, in difference to (type){."""
        return self.tokens[brace - 1].text == ")" and \
            self.other[brace - 1] == first + 1

    def is_declaration(self, first):
        a = self.tokens[first]
        b = self.tokens[first + 1]
        if a.text in TYPES:
            return True
        if a.kind != "word" or a.text in JUMPS:
            return False
        return b.kind == "word" or (b.text == "*" and
                                    self.tokens[first + 2].kind == "word")

    # --- operators ----------------------------------------------------------------

    def negate(self):
        for i in self.indexes():
            t = self.tokens[i]
            if t.text in ("if", "while") and self.tokens[i + 1].text == "(":
                first, last = i + 2, self.other[i + 1] - 1
            elif t.text == "?":
                first, last = self.left_of(i, set()), i - 1
            else:
                continue
            if first <= last:
                yield self.place("negate", self.tokens[first].start,
                                 self.tokens[last].end,
                                 f"!({self.between(first, last)})")

    def logic(self):
        for i in self.indexes():
            t = self.tokens[i]
            if t.text not in ("&&", "||"):
                continue
            ends = {"||"} if t.text == "||" else {"&&", "||"}
            first, last = self.left_of(i, ends), self.right_of(i, ends)
            start, end = self.tokens[first].start, self.tokens[last].end
            yield self.place("logic", start, end, self.between(first, i - 1))
            yield self.place("logic", start, end, self.between(i + 1, last))
            yield self.place("logic", t.start, t.end,
                             "&&" if t.text == "||" else "||")

    def off_by_one(self):
        skipped = self.dimensions()
        for i in self.indexes():
            t = self.tokens[i]
            if t.kind == "sign" and t.text in BOUNDS:
                yield self.place("off-by-one", t.start, t.end, BOUNDS[t.text])
            number = INTEGER.fullmatch(t.text) if t.kind == "number" else None
            if number is None or i in skipped:
                continue
            value = int(number.group(1), 0)
            form = "{:#x}{}" if number.group(1)[:2] in ("0x", "0X") else "{}{}"
            for near in (value + 1, value - 1):
                if near >= 0:
                    yield self.place("off-by-one", t.start, t.end,
                                     form.format(near, number.group(2)))

    def dimensions(self):
        """Numbers that are sizes of arrays, which have room to spare."""
        found = set()
        for first, last in self.statements():
            if not self.is_declaration(first):
                continue
            for i in range(first, last):
                if self.tokens[i].text == "=":
                    break
                if self.tokens[i].text == "[":
                    found.update(range(i, self.other[i]))
        return found

    def drop(self):
        for first, last in self.statements():
            if self.is_declaration(first):
                continue
            if self.tokens[first].text == "return" and last + 1 == self.last:
                continue
            if first + 1 == last and self.tokens[first].kind != "word":
                continue
            yield self.place("drop", self.tokens[first].start,
                             self.tokens[last].end, ";")

    def swap(self):
        """Two neighbours: numbers, or names of one family. Not flags in another order."""
        last = {}
        for i in self.indexes():
            t = self.tokens[i]
            if t.kind == "number" and INTEGER.fullmatch(t.text):
                family = "0"
            elif t.kind == "word" and NAME.fullmatch(t.text) and \
                    self.tokens[i + 1].text != "(":
                family = t.text.split("_")[0]
            else:
                continue
            at = last.get(family)
            last[family] = i
            if at is None:
                continue
            a = self.tokens[at]
            if a.text == t.text or self.text.count("\n", a.end, t.start) > 2 or \
                    self.are_flags(at, i):
                continue
            yield self.place("swap", a.start, t.end,
                             t.text + self.text[a.end:t.start] + a.text)

    def are_flags(self, a, b):
        """Both are operands of one chain of |, which means the same in any order."""
        signs = {self.tokens[i].text for i in range(a + 1, b, 2)}
        return signs == {"|"} and self.tokens[a - 1].text in ENDS | {"|"} and \
            self.tokens[b + 1].text in ENDS | {"|"}

    def places(self):
        for operator in (self.negate, self.logic, self.off_by_one, self.drop,
                         self.swap):
            yield from operator()


def places_of(text, is_header=False):
    """All places of a file in their order; None if its brackets do not match. All
    function bodies of a header are inline."""
    tokens = tokens_of(text)
    other = partners(tokens)
    if other is None:
        return None
    found = set()
    for first, last in bodies(tokens, other):
        found.update(Body(text, tokens, other, first, last).places())
    return sorted(found)
