#!/usr/bin/env python3
"""What `make lint` runs: clang-format and shellcheck, Python's own compiler, what the pages say of the tree, clang-tidy.

clang-tidy takes seconds a file, so a clean result is remembered under a hash of everything of this
repository that it saw (the file, the headers it includes, .clang-tidy, the compile command).
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "muster-tidy"
OURS = ("common/", "operator/", "trainer/")
# GCC's vector extensions, some of which clang 14 lacks.
NOT_CLANG = tuple(f"trainer/compute/cpu/kernels/{name}.cc" for name in ("generic", "avx2", "avx512", "avx512_bf16"))
INCLUDE = re.compile(rb'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
PRECOMPILED = re.compile(r" (-fpch-preprocess|-Winvalid-pch|-include \S*/cmake_pch\.hxx)(?= )")
TIDY = ["clang-tidy", "--quiet", "--extra-arg=-Wno-unknown-warning-option"]


def tracked(*patterns):
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in names.splitlines() if (ROOT / name).is_file()]


def passes(command, files=None):
    """Runs the command, over the files if there are some to be looked at; it prints its own complaints."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(ROOT / "build/pycache")}
    return files == [] or subprocess.run(command + (files or []), cwd=ROOT, env=environment).returncode == 0


@functools.cache
def read(path):
    return path.read_bytes()


@functools.cache
def inputs(source):
    """The file and every file of the repository that it includes, directly or not."""
    seen, found = set(), [source]
    while found:
        path = found.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        for name in INCLUDE.findall(read(path)):
            found += [ROOT / name.decode(), path.parent / name.decode()]
    return sorted(seen)


def key(source, command):
    digest = hashlib.sha256(command.encode())
    for path in [ROOT / ".clang-tidy", *inputs(source)]:
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + read(path))
    return digest.hexdigest()


def plain_commands(build):
    """The compile commands of each source by itself and without precompiled headers: clang cannot read GCC's, and a
    missing include would hide behind them or behind another source. They are also written into build/lint, which it
    returns, for clang-tidy."""
    entries = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        together = pathlib.Path(entry["file"])
        sources = INCLUDE.findall(read(together)) if together.parent.name == "Unity" else [str(together).encode()]
        for source in sources:
            command = PRECOMPILED.sub("", entry["command"]).replace(str(together), source.decode())
            entries.append({**entry, "file": source.decode(), "command": command})
    folder = ROOT / "build/lint"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(entries))
    return folder, entries


# Texts in quotes stay as they are; a comment, to the end of its line or of its block, is left out.
TEXT_OR_COMMENT = re.compile(
    rb'R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)


def code_of(source):
    """A source without comments and blanks: clang-tidy says the same of two that are alike in this."""
    def kept(found):
        return b"" if found[0].startswith(b"/") and b"NOLINT" not in found[0] else found[0]

    return b"".join(TEXT_OR_COMMENT.sub(kept, source).split())


def has_changed(name, commit):
    before = subprocess.run(["git", "show", f"{commit}:{name}"], cwd=ROOT, capture_output=True)
    return before.returncode != 0 or code_of(before.stdout) != code_of(read(ROOT / name))


def changed_since(commit):
    """The names of the files whose code differs from the commit; None if this clone does not have it."""
    command = ["git", "diff", "--name-only", commit, "--"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if result.returncode != 0:
        return None
    return {name for name in result.stdout.splitlines() if not (ROOT / name).is_file() or has_changed(name, commit)}


def is_as_it_was(source, changed):
    """Whether neither the file has changed nor its own header, nor what clang-tidy looks for. A header that half of the
    sources include would have them all looked at; that is left to a run without --since."""
    seen = [ROOT / ".clang-tidy", source, source.with_suffix(".h")]
    return not changed.intersection(str(path.relative_to(ROOT)) for path in seen)


def order_of_change(since):
    """The place of each file that was changed after the commit: the last change has the lowest number."""
    command = ["git", "log", "--format=", "--name-only", f"{since}..HEAD"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.split()
    return {name: place for place, name in reversed(list(enumerate(names)))}


def tidy(build, since, seconds):
    """clang-tidy over our own .cc files that `build` compiles; tests are left to the compiler. Files are left out that
    are as they were in the commit `since`. After `seconds` no further file is begun; the last changes come first."""
    ends = time.monotonic() + seconds
    changed = changed_since(since) if since else None
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True).stdout
    keys = {}
    commands, entries = plain_commands(build)
    for entry in entries:
        source = pathlib.Path(entry["file"])
        name = os.path.relpath(source, ROOT)
        if source.suffix != ".cc" or name.startswith(NOT_CLANG):
            continue  # clang-tidy knows neither nvcc's options nor GCC's vectors
        if name.startswith(OURS) and source.is_file():
            command = version + entry["command"].replace(str(ROOT), "")
            keys[source] = key(source, command)
    pending = {source: name for source, name in keys.items() if not (CACHE / name).exists()
               and (changed is None or not is_as_it_was(source, changed))}

    def check(source):
        if time.monotonic() > ends:
            return None
        return subprocess.run([*TIDY, "-p", str(commands), str(source)], capture_output=True, text=True)

    place = order_of_change(since) if since else {}
    pending = dict(sorted(pending.items(), key=lambda each: place.get(os.path.relpath(each[0], ROOT), 0)))
    CACHE.mkdir(parents=True, exist_ok=True)
    failed, left = 0, 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for source, result in zip(pending, pool.map(check, pending)):
            if result is None:
                left += 1
            elif result.returncode == 0:
                (CACHE / pending[source]).touch()
            else:
                failed += 1
                print(result.stdout or result.stderr, flush=True)
    print(f"clang-tidy: {len(pending) - left} of {len(keys)} files looked at, {failed} with complaints")
    if left:
        print(f"clang-tidy: {left} files that have changed were not looked at in {seconds:g} s; `make lint` looks at them")
    return failed == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="a configured and built build directory")
    parser.add_argument("--since", help="a commit in which clang-tidy had no complaints")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long clang-tidy begins further files")
    options = parser.parse_args()
    build = options.build.resolve()
    cpp = tracked("*.h", "*.cc", "*.inc", "*.cu", "*.cuh")
    checks = {
        "clang-format": passes(["clang-format", "--dry-run", "--Werror"], cpp),
        "shellcheck": passes(["shellcheck"], tracked("*.sh", ".ci/run", "docker/build", "tests/gpu/bundle")),
        "python": passes([sys.executable, "-m", "compileall", "-q"], tracked("*.py")),
        "tree": passes([sys.executable, "tests/python/check_tree.py"]),
        "pages": passes([sys.executable, "tests/python/check_pages.py"]),
        "symptoms": passes([sys.executable, "tests/python/check_symptoms.py"]),
        "clang-tidy": tidy(build, options.since, options.seconds),
    }
    for name in [name for name, passed in checks.items() if not passed]:
        print(f"lint: {name} has complaints", file=sys.stderr)
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
