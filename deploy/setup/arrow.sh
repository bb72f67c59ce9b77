#!/usr/bin/env bash
# Installs Apache Arrow's headers, libarrow and libparquet into build/arrow, from the wheel of pyarrow: 55 MB are
# downloaded, 65 MB are kept. Does nothing where build/arrow is already what arrow.txt says.
#   arrow.sh           fails if the wheel cannot be had
#   arrow.sh --try     for a build, which needs build/arrow/link.txt, the options of the linker: if the wheel cannot be
#                      had, it is left empty, and the build is without tables
set -euo pipefail
cd "$(dirname "$0")/../.."

list=deploy/setup/arrow.txt
to=build/arrow
hash=$(sha256sum <"$list")
if [ "$(cat $to/stamp 2>/dev/null)" = "$hash" ] && [ -s $to/link.txt ]; then
  touch $to/link.txt
  exit
fi
mkdir -p $to

# Every step fails it, also where `set -e` does not hold.
fetch() {
  rm -rf $to/wheel $to/pyarrow $to/licenses &&
    { [ -x $to/pip/bin/pip ] || /usr/bin/python3 -m venv --clear $to/pip; } &&
    $to/pip/bin/pip download --quiet --disable-pip-version-check --retries 5 --timeout 60 --no-deps \
      --only-binary=:all: --dest $to/wheel -r "$list" &&
    /usr/bin/python3 -c "
import glob, re, zipfile
wheel = zipfile.ZipFile(glob.glob('$to/wheel/*.whl')[0])
wanted = re.compile(r'pyarrow/(include/(arrow|parquet)/|lib(arrow|parquet)\.so\.)|.*/licenses/.')
wheel.extractall('$to', [name for name in wheel.namelist() if wanted.match(name)])
" &&
    mv $to/pyarrow-*.dist-info/licenses $to/licenses && rm -rf $to/wheel $to/pip $to/pyarrow-*.dist-info
}

echo "arrow.sh: installing $list into $to"
if ! fetch 2>$to/log; then
  sed 's/^/arrow.sh: /' $to/log >&2
  [ "${1:-}" = --try ] || exit 1
  echo "arrow.sh: the build is without tables: Apache Arrow's wheel could not be had. deploy/setup/arrow.sh tries again" >&2
  : >$to/link.txt
  exit
fi
(cd $to && ls -1 "$PWD"/pyarrow/lib*.so.*) >$to/link.txt
echo "$hash" >$to/stamp
