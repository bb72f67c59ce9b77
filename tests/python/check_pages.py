#!/usr/bin/env python3
"""Checks the pages of this repository: links and their anchors in all of them; in those for contributors also the files,
functions and make targets that they name, and in sources and pages the numbers of decisions. Prints a line for each that is
not there, and for each block of commands, output or YAML that does not say how it is tested (page_blocks.py), and fails if
there is one.

    /usr/bin/python3 tests/python/check_pages.py
"""

import pathlib
import re
import subprocess
import sys

import page_blocks

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOR_CONTRIBUTORS = re.compile(
    r"CONTRIBUTING\.md|docs/(architecture|decisions|testing)\.md|docs/internals/.*\.md")
DECISIONS = "docs/decisions.md"
LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FENCE = re.compile(r"(?ms)^```.*?^```")
# A path from the root, or the name of a source file; files of a job, such as result.json, are neither.
PATH = re.compile(r"[\w<>*.-]+(?:/[\w<>*.-]+)*/?")
SOURCE = re.compile(r".+\.(cc|h|inc|cu|cuh|py|md|txt|toml|proto|sh|svg)")
NAME = re.compile(r"(?:\w+::)*~?([A-Za-z]\w+)(?:\(\)|<T>)?")
REFERENCE = re.compile(r"\b[Dd]ecisions? (\d+)(?: and (\d+))?")


def slug(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(text):
    found = []
    for heading in re.findall(r"(?m)^#+ (.*)", FENCE.sub("", text)):
        name = slug(heading)
        found.append(name if name not in found else f"{name}-{sum(one.startswith(name) for one in found)}")
    return found


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def without_fences(text):
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)


def links(pages, exists):
    """Links that lead nowhere. `exists` says whether there is a file or folder of a name."""
    for name, text in pages.items():
        text = without_fences(text)
        for found in LINK.finditer(text):
            target, _, anchor = found[1].partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            path = str(pathlib.PurePosixPath(name).parent / target) if target else name
            path = str(pathlib.Path("/", path).resolve())[1:]
            if not exists(path):
                yield f"{name}:{line_of(text, found.start())}: no file {path}"
            elif anchor and path in pages and anchor not in anchors(pages[path]):
                yield f"{name}:{line_of(text, found.start())}: no heading #{anchor} in {path}"


def expression_of(path):
    """A regular expression for the names of files and folders that a page writes as `path`, with <...> for anything."""
    start = "" if "/" in path else "(?:.*/)?"
    return start + re.escape(re.sub(r"<[^>]*>|\*", "\0", path.rstrip("/"))).replace("\0", "[^/\n]*")


def is_path(code, tops):
    return PATH.fullmatch(code) and (code.split("/")[0] in tops if "/" in code else SOURCE.fullmatch(code))


def names(pages, sources, listing):
    """Files and functions that pages for contributors name and the tree does not have; in a table of files, a function that
    a row names must be in one of the row's files. `sources` are the texts of files that are no pages."""
    everything = {word for text in sources.values() for word in re.findall(r"\w+", text)}
    tops = {name.split("/")[0] for name in listing.splitlines()}
    for name, text in pages.items():
        if not FOR_CONTRIBUTORS.fullmatch(name):
            continue
        for number, line in enumerate(without_fences(text).splitlines(), 1):
            cells = line.split(" | ") if line.startswith("| ") else [""]
            files = [code for code in CODE.findall(cells[0]) if is_path(code, tops) and not code.endswith(".md")]
            pattern = re.compile("|".join(f"{expression_of(file)}(/.*)?" for file in files))
            known = everything if not files else {word for file, source in sources.items() if pattern.fullmatch(file)
                                                  for word in re.findall(r"\w+", source)}
            for code in CODE.findall(line):
                name_of = NAME.fullmatch(code)
                if is_path(code, tops):
                    missing = not re.search(f"(?m)^{expression_of(code)}(/|$)", listing)
                else:
                    missing = name_of and name_of[1] not in known
                if missing:
                    yield f"{name}:{number}: `{code}` is not in " + (", ".join(files) if files and name_of else "the tree")


def decisions(texts):
    """Numbers of decisions that are not in order, and references to those that are not there."""
    numbers = [int(number) for number in re.findall(r"(?m)^(\d+)\. \*\*", texts[DECISIONS])]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"{DECISIONS}: expected the numbers 1, 2, 3 and so on, found {numbers}"
    for name, text in texts.items():
        for found in REFERENCE.finditer(text):
            for number in filter(None, found.groups()):
                if int(number) not in numbers:
                    yield f"{name}:{line_of(text, found.start())}: no decision {number} in {DECISIONS}"


def tests_of_blocks(pages, texts):
    """Blocks that do not say how they are tested, or name a test or manifest that is not there or has nothing of them."""
    for name, text in pages.items():
        for block in page_blocks.blocks(text) if page_blocks.PAGE.fullmatch(name) else []:
            place, form = f"{name}:{block.line}", block.form
            if block.language == "text" and not block.comments:
                continue
            if not form:
                found = " and ".join(f'"{comment}"' for comment in block.comments) or "none"
                yield f"{place}: expected one comment above the block ({page_blocks.FORM_NAMES}), found {found}"
                continue
            named = form["tests"].split(", ") if form["tests"] else [form["manifest"]] if form["manifest"] else []
            yield from (f"{place}: no file {file}" for file in named if file not in texts)
            for command in block.commands if form["tests"] else []:
                word = command.split()[1]
                if not any(re.search(rf"\b{word}\b", texts.get(file, "")) for file in named):
                    yield f"{place}: expected the word {word} in {' or '.join(named)}, found none"


def main():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    files = [name for name in listed if (ROOT / name).is_file()]
    folders = {str(folder) for name in files for folder in pathlib.PurePosixPath(name).parents}
    texts = {}
    for name in files:
        if not name.startswith(("tests/fixtures/", "examples/data/", "tests/fuzz/corpus/")):
            try:
                texts[name] = (ROOT / name).read_text()
            except UnicodeDecodeError:
                continue
    pages = {name: text for name, text in texts.items() if name.endswith(".md")}
    sources = {name: text for name, text in texts.items() if name not in pages}
    found = [*links(pages, lambda path: path in folders or path in files), *names(pages, sources, "\n".join(files)),
             *decisions(texts), *tests_of_blocks(pages, texts)]
    print("\n".join([*found, f"pages: {len(pages)} looked at, {len(found)} complaints"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
