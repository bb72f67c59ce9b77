"""What `make site` changes in pages, which GitHub shows as they are: links that leave docs/, and lists.

Pages and manifests outside of docs/ to which pages lead are a part of the site, below repository/. For other files and
for folders the site shows the path in place of a link. mkdocs calls on_files and on_page_markdown.
"""

import pathlib
import posixpath
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
ELSEWHERE = "repository/"
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"( *)(```+)")
ITEM = re.compile(r"(?:[-*+]|\d+\.) ")


def path_of(uri):
    """The path in the repository of a page of the site."""
    return uri.removeprefix(ELSEWHERE) if uri.startswith(ELSEWHERE) else "docs/" + uri


def uri_of(path):
    """The place on the site of a path in the repository; None if it is not a part of the site."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return ELSEWHERE + path if path.endswith((".md", ".yaml")) and (ROOT / path).is_file() else None


def parts_of(text):
    """Pairs of whether it is code and the lines, for each block of code and for what is between."""
    parts, fence = [(False, [])], None
    for line in text.splitlines():
        found = FENCE.match(line)
        if fence is None and found:
            fence = found[2]
            parts.append((True, [line]))
        elif fence is None:
            parts[-1][1].append(line)
        else:
            parts[-1][1].append(line)
            if line.strip() == fence:
                fence = None
                parts.append((False, []))
    return parts


def links_of(text, path):
    """The paths in the repository to which a page leads."""
    for code, lines in parts_of(text):
        for found in [] if code else LINK.finditer("\n".join(lines)):
            if not re.match(r"[a-z]+:", found[2]):
                yield posixpath.normpath(posixpath.join(posixpath.dirname(path), found[2]))


def with_links(text, path):
    """The text with links as they must be on the site."""
    def link(found):
        if re.match(r"[a-z]+:", found[2]):
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[2]))
        uri = uri_of(target)
        if uri:
            return found[1] + posixpath.relpath(uri, posixpath.dirname(uri_of(path)) or ".") + found[3]
        words = found[1][1:-2]
        return f"`{target}`" if target.endswith(words.strip("`")) else f"{words} (`{target}`)"
    return LINK.sub(link, text)


def with_lists(lines, in_list):
    """The lines with an empty line before each list and table, and with what belongs to an item four places to the
    right, as Python-Markdown expects them. `in_list` says whether an item goes on from before; returns it for what
    follows."""
    made, before = [], ""
    for line in lines:
        if ITEM.match(line):
            if before and not in_list:
                made.append("")
            in_list = True
        elif line and line[0] not in " " and not before:
            in_list = False
        if line.startswith("|") and before and not before.startswith("|"):
            made.append("")
        made.append(re.sub(r"^ {1,3}(?! )", "    ", line) if in_list else line)
        before = line
    return made, in_list


def on_page_markdown(markdown, page, **_):
    made, in_list = [], False
    for code, lines in filter(lambda part: part[1], parts_of(markdown)):
        if code:
            indent = len(FENCE.match(lines[0])[1])
            made.append("\n".join("    " * bool(indent) + line[indent:] for line in lines))
        else:
            lines, in_list = with_lists(lines, in_list)
            made.append(with_links("\n".join(lines), path_of(page.file.src_uri)))
    return "\n".join(made)


def on_files(files, config, **_):
    from mkdocs.structure.files import File  # here, so that the test needs no mkdocs

    found = [path_of(file.src_uri) for file in files.documentation_pages()]
    known = set(found)
    for path in found:
        if not path.endswith(".md"):
            continue
        for target in links_of((ROOT / path).read_text(), path):
            if target not in known and not target.startswith("docs/") and uri_of(target):
                known.add(target)
                found.append(target)
                files.append(File.generated(config, uri_of(target), abs_src_path=str(ROOT / target)))
    return files
