"""The blocks of the pages, and the comments above them that say how each block is tested. A comment is one of

    <!-- run -->                     the commands run; also `run in the background` and `run, ends with 65`
    <!-- before: COMMANDS -->        these run first and the reader does not see them; above a comment `run`
    <!-- output -->                  the last commands that ran print this; `...` stands for anything
    <!-- part of FILE at PATH without PATH -->   YAML that is valid when FILE has it at the first path, after what
                                     stands at the second one was removed there; both paths may be left out
    <!-- tested by FILE, FILE -->    one of these tests runs each of the commands, or makes what is shown
    <!-- not run: REASON -->         nothing runs it, for this reason

Blocks of the language `text` are figures, which need no comment. tests/python/check_pages.py finds blocks without a
comment, tests/integration/pages/run_pages.py runs them.
"""

import dataclasses
import re

PAGE = re.compile(r"README\.md|charts/muster/README\.md|docs/.*\.md")
BLOCK = re.compile(r"(?ms)((?:^ *<!--(?:(?!-->).)*-->\n)*)^( *)```(\w*)\n(.*?)^ *```$")
FORMS = re.compile(r"""(?x)
    (?P<run>run (?P<background>\ in\ the\ background)? (?:,\ ends\ with\ (?P<code>\d+))?) | (?P<output>output)
    | part\ of\ (?P<manifest>\S+) (?:\ at\ (?P<at>\S+))? (?:\ without\ (?P<without>\S+))?
    | tested\ by\ (?P<tests>\S+(?:,\ \S+)*) | not\ run:\ (?P<reason>.+)""", re.DOTALL)
FORM_NAMES = "run, output, part of FILE, tested by FILE, not run: REASON"
COMMAND = re.compile(r"(?m)^ *((?:muster|helm|kubectl) (?:[^#|>\n\\]|\\\n)+)")
# What another machine may print otherwise: `...`, a SHA-256, a time of day, and a number with a fraction or a comma.
VARIES = re.compile(r"\.\.\.|\b[0-9a-f]{64}\b|\b\d\d:\d\d:\d\d\b|\d[\d,]*[.,]\d+(?:e-?\d+)?")
ANY_NUMBER = r"\d[\d,.]*(?:e-?\d+)?"


@dataclasses.dataclass
class Block:
    line: int
    language: str
    text: str
    comments: list  # of the comments above it, but for `before`
    before: str

    @property
    def form(self):
        """What the comment says, or None where there is not exactly one."""
        return FORMS.fullmatch(self.comments[0]) if len(self.comments) == 1 else None

    @property
    def commands(self):
        """Those of muster, helm and kubectl, without what stands behind a pipe or in a comment."""
        return [re.sub(r"\\\n *", "", command).strip() for command in COMMAND.findall(self.text)]


def blocks(page):
    for found in BLOCK.finditer(page):
        above, indent, language, text = found.groups()
        comments = [comment.strip() for comment in re.findall(r"(?s)<!--(.*?)-->", above)]
        before = [comment.removeprefix("before:") for comment in comments if comment.startswith("before:")]
        yield Block(page.count("\n", 0, found.end(1)) + 1, language, re.sub(f"(?m)^{indent}", "", text),
                    [comment for comment in comments if not comment.startswith("before:")], "\n".join(before))


def expression(output):
    """What the output of a page stands for, as a regular expression for an output with single spaces."""
    text, found, at = " ".join(output.split()), "", 0
    for one in VARIES.finditer(text):
        found += re.escape(text[at:one.start()])
        found += {"...": ".*?"}.get(one[0], r"[\w:]+" if len(one[0]) == 64 or ":" in one[0] else ANY_NUMBER)
        at = one.end()
    return found + re.escape(text[at:])


def merged(base, part):
    """`base` with the fields of `part`; a field of `part` that is `...` stays as it is in `base`."""
    if not (isinstance(base, dict) and isinstance(part, dict)):
        return part
    return {**base, **{key: merged(base.get(key), value) for key, value in part.items() if value != "..."}}


def alternatives(text):
    """The YAML of a block; a line `# or` begins another one, below the same first line."""
    first, *others = re.split(r"(?m)^# or\n", text)
    return [first, *(first.split("\n", 1)[0] + "\n" + other for other in others)]


def manifest_with(part, base, at, without):
    """The manifest `base` with the YAML `part` at a path, after another path was removed; paths have dots."""
    for name in reversed(at.split(".") if at else []):
        part = {name: part}
    if without:
        *path, last = without.split(".")
        inner = base
        for name in path:
            inner = inner[name]
        del inner[last]
    return merged(base, part)
