#!/usr/bin/env bash
# Installs the packages of debian-packages.txt that are missing, as root or by sudo:
#   install.sh SECTION...    e.g. install.sh build develop
# It says nothing and does nothing where no package of these sections is missing.
set -euo pipefail
cd "$(dirname "$0")"

wanted=()
for section; do
  mapfile -t packages < <(sed -n "/^# \[$section\]/,/^# \[/p" debian-packages.txt | grep -vE '^(#|$)')
  [ "${#packages[@]}" -gt 0 ] || {
    echo "install.sh: expected a section of debian-packages.txt, found \"$section\"" >&2
    exit 64
  }
  wanted+=("${packages[@]}")
done
[ "${#wanted[@]}" -gt 0 ] || { echo "usage: install.sh SECTION..." >&2; exit 64; }
mapfile -t installed < <(
  dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/^installed //p')
mapfile -t missing < <(
  comm -23 <(printf '%s\n' "${wanted[@]}" | sort) <(printf '%s\n' "${installed[@]}" | sort))
[ "${#missing[@]}" -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ]; then
  as_root=(env)
elif command -v sudo >/dev/null; then
  as_root=(sudo env)
else
  echo "install.sh: needs root or sudo to install: ${missing[*]}" >&2
  exit 1
fi
apt=("${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300)

echo "install.sh: installing ${#missing[@]} Debian packages: ${missing[*]}"
for attempt in 1 2 3; do
  if "${apt[@]}" update </dev/null >/dev/null &&
     "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null; then
    exit 0
  fi
  echo "install.sh: attempt $attempt failed" >&2
  sleep $((attempt * 5))
done
exit 1
