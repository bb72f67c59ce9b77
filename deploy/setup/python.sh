#!/usr/bin/env bash
# Makes build/venv with what the tests import from PyPI; `python.sh bench` adds the benchmark's peers,
# `python.sh e2e` what the end-to-end tests need. `python.sh site` makes build/site-venv with what makes the site.
# Debian's own python3, so that the version is the same everywhere. Does nothing where build/venv is
# already what the requirements say.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=build/venv
[ "${1:-}" != site ] || venv=build/site-venv

# require FILE: installs the file's packages unless the stamp says it was done.
require() {
  local file=$1 stamp hash
  stamp=$venv/$(basename "$file").stamp
  hash=$(sha256sum <"$file")
  [ "$(cat "$stamp" 2>/dev/null)" = "$hash" ] && return
  echo "python.sh: installing $file into $venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 5 --timeout 60 -r "$file"
  echo "$hash" >"$stamp"
}

if [ ! -x $venv/bin/pip ]; then
  /usr/bin/python3 -m venv --clear $venv
fi
case "${1:-}" in
  '') require tests/python/requirements.txt ;;
  site) require tests/python/requirements-site.txt ;;
  bench | e2e) require tests/python/requirements.txt; require "tests/python/requirements-$1.txt" ;;
  *) echo "usage: python.sh [bench|e2e|site]" >&2; exit 64 ;;
esac
