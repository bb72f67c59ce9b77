#!/usr/bin/env bash
# Installs CUDA from PyPI into build/cuda, for a machine without NVIDIA's packages. Needs no GPU. Does nothing
# where build/cuda is already what cuda.txt says.
set -euo pipefail
cd "$(dirname "$0")/../.."

list=deploy/setup/cuda.txt
to=build/cuda
hash=$(sha256sum <"$list")
[ "$(cat $to/stamp 2>/dev/null)" = "$hash" ] && exit
rm -rf $to
mkdir -p $to
/usr/bin/python3 -m venv $to/pip
echo "cuda.sh: installing $list into $to"
$to/pip/bin/pip install --quiet --disable-pip-version-check --retries 5 --timeout 60 --no-deps --target $to -r "$list"
root=$to/nvidia/cu13
# nvcc looks for libraries in lib64.
ln -sfn lib $root/lib64
for library in "$root"/lib/lib*.so.*; do
  ln -sf "$(basename "$library")" "${library%%.so.*}.so"
done
echo "$hash" >$to/stamp
