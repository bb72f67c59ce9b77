#!/usr/bin/env python3
"""Checks what the pages for contributors say of the C++ of the two programs: which folder includes which, what is defined
where, how long files and functions are, which errors there are and who catches all of them. Prints a line for each place
that differs, and fails if there is one.

    /usr/bin/python3 tests/python/check_tree.py
"""

import fnmatch
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ROOT / "tests/python/folders.toml"
MOST_LINES, MOST_LINES_OF_FUNCTION = 600, 80
INCLUDE = re.compile(r'\s*#\s*include\s+(["<])([^">]+)')
# What a file without I/O, clock, threads and chance of its own has no use for.
IMPURE = re.compile(
    r"#\s*include\s+(<(fstream|random|thread|future|mutex|unistd\.h|fcntl\.h|poll\.h|sys/.*|netinet/.*|grpcpp/.*)>"
    r'|"common/(random\.h|system/.*|threads/.*)")|\b(steady|system|high_resolution)_clock::now|clock_gettime')

# Files without a header of their own: programs, the kinds of one thing, which share a header, and parts of one header.
WITHOUT_HEADER = [
    "*/main.cc", "trainer/cmd/supervisor.cc", "operator/cmd/local/*.cc", "operator/cmd/cluster/*_command.cc",
    "trainer/compute/layers/*.cc", "trainer/compute/metrics/*.cc", "trainer/compute/*/layers/*.cc",
    "trainer/compute/*/losses/*.cc", "trainer/compute/cuda/runtime/*_gpu.cc", "trainer/data/stages/*.cc",
    "trainer/loop/roles/run_*.cc", "trainer/loop/roles/*_group.cc", "trainer/ps/shard/shard_*.cc",
    "*/kernels/*.cc", "trainer/checkpoint/files/*_reader.cc", "trainer/checkpoint/files/*_writer.cc",
    "trainer/compute/optimizer_slots.cc"]
# What a file defines although another header declares it.
DECLARED_ELSEWHERE = {
    "common/documents/malformed_yaml.cc": {"Malformed"}, "common/program/log.cc": {"as_text"},
    "operator/api/status.cc": {"JobStatus"}, "operator/kube/pods/gang.cc": {"pod_group_of"},
    "trainer/compute/cpu/layers/activation.cc": {"make_operation"},
    "trainer/compute/cpu/layers/convolution.cc": {"make_operation"},
    "trainer/images/decode.cc": {"check_pixels", "check_data"}, "trainer/spec/convert.cc": {"name_of"},
    "trainer/spec/fit.cc": {"model_on_data", "training_notes", "note_of_memory"}}
DEFINITION = re.compile(
    r"^(?!static|using|return|extern|template|constexpr|typedef|namespace)(?:[A-Za-z][\w:<>,&*\[\] ]*?[ &*])?"
    r"((?:\w+(?:<\w*>)?::)*)(~?\w+|operator\S+?)\(", re.MULTILINE)

# At the beginning of a line of an anonymous namespace: a constant, a type that is defined, a function, or an alias.
HIDDEN = re.compile(
    r"(?m)^(?:(?:inline |static )?constexpr [\w:<>, *]*?[ *](k[A-Z]\w*)(?=[\[{ ])"
    r"|(?:struct|class|enum class|enum) (\w+)(?=[ {][^;]*\{)"
    r"|(?!using|constexpr|template|struct|class|enum|return)\b[\w:<>,&*\[\] ]*?[ &*](\w+)\(([^;{}]*)\)"
    r"(?: \w+)? \{|using (\w+) = ([^;]*);)")

# Classes of errors that derive from none of the three kinds, because they never leave their file.
OTHER_ERRORS = {"operator/kube/http/exchange.h"}
# Who may end any error, whatever it is, without passing it on: the ends of programs, threads and calls from outside, and
# what nothing depends on.
ENDS = {
    "common/net/http_server.cc": "a request is answered with 500",
    "operator/cmd/main.cc": "the end of muster", "operator/local/guard.cc": "the end of the guard",
    "operator/local/hosts/agent.cc": "the end of the agent", "trainer/loop/guard.cc": "the end of muster-trainer",
    "operator/local/copy/copy_receiver.cc": "the sender is told",
    "trainer/tables/arrow/arrow_table.cc": "the end of a library",
    "operator/local/hosts/each_host.cc": "the host is named",
    "operator/controller/controller.cc": "a bug with one job; the others go on",
    "operator/kube/http/exchange.cc": "the waiting caller throws it",
    "operator/kube/http/http_transport.cc": "the pool of threads is there already",
    "operator/cmd/show/display.cc": "a line is shown as it is",
    "trainer/loop/batches/device_threads.cc": "keep() keeps it for the caller",
    "trainer/loop/synchronizers/local_synchronizer.cc": "the end of a training that failed already",
    "trainer/ps/serving/exchange_streams.cc": "shared memory is refused",
    "trainer/ps/serving/server.cc": "the caller is told",
    "trainer/ps/serving/shard_host.cc": "the sender tries again"}
CATCH_ALL = re.compile(r"(?ms)^( *)\} catch \((?:\.\.\.|const std::exception&[^)]*)\) \{(.*?)^\1\}")


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def is_allowed(folder, patterns):
    return any(folder == pattern or pattern.endswith("/...") and (folder + "/").startswith(pattern[:-3])
               for pattern in patterns)


def includes(files, folders):
    """Includes that the table of folders does not allow. `files` are the texts by their names."""
    alone = [(start, name) for name, folder in folders.items() for start in folder.get("alone", [])]
    for name, text in files.items():
        own = str(pathlib.PurePath(name).parent)
        if own not in folders:
            yield f"{name}: expected a folder of tests/python/folders.toml, found {own}"
            continue
        allowed = folders[own]["may_include"]
        for number, line in enumerate(text.splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            header = found[2]
            if header not in files and f"{own}/{header}" in files:
                header = f"{own}/{header}"
            folder = str(pathlib.PurePath(header).parent)
            ours = folder in folders or header.startswith("tests/")
            if ours and folder != own and not is_allowed(folder, allowed):
                yield f"{name}:{number}: {own} may include {', '.join(allowed) or 'no other folder'}; found {header}"
            for start, owner in alone:
                if header.startswith(start) and owner != own:
                    yield f"{name}:{number}: only {owner} may include {start}; found {header}"


def purity(files, folders):
    for name, text in files.items():
        own = str(pathlib.PurePath(name).parent)
        for found in IMPURE.finditer(text) if folders.get(own, {}).get("pure") else []:
            yield f"{name}:{line_of(text, found.start())}: {own} is pure; found {found[0]}"


def sizes(files):
    for name, text in files.items():
        lines = text.splitlines()
        if len(lines) > MOST_LINES:
            yield f"{name}: expected at most {MOST_LINES} lines, found {len(lines)}"
        for end, line in enumerate(lines):
            if not re.fullmatch(r" *\}", line):
                continue
            depth, begin = line.index("}"), end - 1
            while begin > 0 and (not lines[begin].strip() or lines[begin].startswith("#")
                                 or len(lines[begin]) - len(lines[begin].lstrip()) > depth):
                begin -= 1
            is_function = not re.match(r" *(\}|if|for|while|switch|else|do|try|case|namespace|class|struct|enum|union)\b",
                                       lines[begin])
            if is_function and end - begin >= MOST_LINES_OF_FUNCTION:
                yield (f"{name}:{begin + 1}: expected a function of at most {MOST_LINES_OF_FUNCTION} lines, "
                       f"found {end - begin + 1}")


def definitions(files):
    """What a file defines that its own header does not declare."""
    for name, text in files.items():
        header = files.get(name.removesuffix(".cc") + ".h")
        if not name.endswith(".cc"):
            continue
        if header is None:
            if not any(fnmatch.fnmatch(name, pattern) for pattern in WITHOUT_HEADER):
                yield f"{name}: expected a header of the same name"
            continue
        text = re.sub(r"(?ms)^namespace \{\n.*?^\}  // namespace\n", lambda match: "\n" * match[0].count("\n"), text)
        for found in DEFINITION.finditer(text):
            classes = re.findall(r"\w+(?=(?:<\w*>)?::)", found[1])
            what = classes[-1] if classes else found[2]
            declared = any(re.search(rf"\b(class|struct)\s[^;{{]*\b{one}\b", header + text) for one in classes) \
                if classes else re.search(rf"\b{re.escape(what)}\b", header)
            if not declared and what not in DECLARED_ELSEWHERE.get(name, set()):
                yield f"{name}:{line_of(text, found.start())}: {what} is not declared in the header of the same name"


def hidden_names(text):
    """What a file's anonymous namespaces define, with the namespace around it, and what an alias stands for. A class
    that is only declared may stand in several files, and so may the same alias."""
    for block in re.finditer(r"(?ms)^namespace \{\n(.*?)^\}  // namespace\n", text):
        outer = "::".join(re.findall(r"(?m)^namespace ([\w:]+) \{", text[:block.start()]))
        for found in HIDDEN.finditer(block[1]):
            types = [re.sub(r"[ \n]\w+$", "", " ".join(one.split())) for one in (found[4] or "").split(",")]
            what = found[1] or found[2] or found[5] or f"{found[3]}({', '.join(types)})"
            yield f"{outer}::{what}", found[6], block.start(1) + found.start()


def clashes(files, targets):
    """Names that two sources of a target hide each from the other: in one unit of compilation they are one name."""
    seen = {}
    for name, text in files.items():
        target = max((one for one in targets if name.startswith(one + "/")), key=len, default="")
        for what, alias, at in hidden_names(text) if name.endswith(".cc") else []:
            first, stands_for = seen.setdefault((target, what), (name, alias))
            if first != name and (alias is None or alias != stands_for):
                yield f"{name}:{line_of(text, at)}: expected a name that {first} does not have, found {what}"


def errors(files):
    """Classes of errors of no kind, and catches of whatever comes where it neither goes on nor is thrown again later."""
    for name, text in files.items():
        for found in re.finditer(r"(?:class|struct) (\w+) (?:final )?: (?:public )?std::\w*(?:error|exception)\b", text):
            if name != "common/error.h" and name not in OTHER_ERRORS:
                yield (f"{name}:{line_of(text, found.start())}: expected {found[1]} to be Unavailable, Invalid or "
                       "DeviceError (common/error.h)")
        for found in CATCH_ALL.finditer(text):
            if not re.search(r"\bthrow\b|current_exception", found[2]) and name not in ENDS:
                yield f"{name}:{line_of(text, found.start())}: expected a kind of errors to be caught, found all of them"


def complaints(files, folders, targets):
    for check in (includes, purity):
        yield from check(files, folders)
    for check in (sizes, definitions, errors):
        yield from check(files)
    yield from clashes(files, targets)


def read_targets():
    """The folders whose sources are compiled together; the operator is a target of its own."""
    return [str(path.parent.relative_to(ROOT)) for folder in ("common", "operator", "trainer")
            for path in (ROOT / folder).rglob("CMakeLists.txt")] + ["operator/cmd/operator"]


def read_tree():
    endings = {".h", ".cc", ".inc", ".cu", ".cuh"}
    paths = [path for folder in ("common", "operator", "trainer") for path in sorted((ROOT / folder).rglob("*"))]
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths if path.suffix in endings}


def main():
    files = read_tree()
    found = list(complaints(files, tomllib.loads(FOLDERS.read_text()), read_targets()))
    print("\n".join([*found, f"tree: {len(files)} files looked at, {len(found)} complaints"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
