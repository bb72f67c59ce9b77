#!/usr/bin/env bash
# Installs the packages of debian-packages.txt that are missing, as root or by sudo:
#   install.sh SECTION...    e.g. install.sh build develop
# It says nothing and does nothing where no package of these sections is missing. On a system without Debian's
# packages it says so and installs nothing: CMake then names what it does not find.
set -euo pipefail
cd "$(dirname "$0")"

# of_release NAME: the value of a line of /etc/os-release.
of_release() {
  sed -n "s/^$1=\"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" /etc/os-release 2>/dev/null || true
}

wanted=()
for section; do
  # A line is a package, or a package and the only release that needs it: "libx-dev bookworm".
  mapfile -t packages < <(sed -n "/^# \[$section\]/,/^# \[/p" debian-packages.txt | grep -vE '^(#|$)' |
    awk -v release="$(of_release VERSION_CODENAME)" 'NF == 1 || $2 == release {print $1}')
  [ "${#packages[@]}" -gt 0 ] || {
    echo "install.sh: expected a section of debian-packages.txt, found \"$section\"" >&2
    exit 64
  }
  wanted+=("${packages[@]}")
done
[ "${#wanted[@]}" -gt 0 ] || { echo "usage: install.sh SECTION..." >&2; exit 64; }

system=$(of_release PRETTY_NAME)
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "install.sh: expected Debian 13 or 12, found ${system:-a system without apt-get}: nothing is installed. It must have what" \
    "Debian calls ${wanted[*]} (deploy/setup/debian-packages.txt, sections: $*)" >&2
  exit 0
fi
mapfile -t installed < <(
  dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/^installed //p')
mapfile -t missing < <(
  comm -23 <(printf '%s\n' "${wanted[@]}" | sort -u) <(printf '%s\n' "${installed[@]}" | sort))
[ "${#missing[@]}" -gt 0 ] || exit 0

by_hand="As root: apt-get update && apt-get install --no-install-recommends ${missing[*]}"
if [ "$(id -u)" = 0 ]; then
  as_root=(env)
elif command -v sudo >/dev/null && sudo true; then
  as_root=(sudo env)
else
  echo "install.sh: expected root, or sudo for this user, found neither, and ${#missing[@]} Debian packages are missing." \
    "$by_hand" >&2
  exit 1
fi
apt=("${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300)

echo "install.sh: installing ${#missing[@]} Debian packages: ${missing[*]}"
for attempt in 1 2 3; do
  if "${apt[@]}" update </dev/null >/dev/null; then
    mapfile -t unknown < <(
      comm -23 <(printf '%s\n' "${missing[@]}") <(apt-cache show "${missing[@]}" 2>/dev/null | sed -n 's/^Package: //p' | sort -u))
    [ "${#unknown[@]}" = 0 ] || {
      echo "install.sh: expected the packages of Debian 13 or 12, found ${system:-a system} without ${unknown[*]}: nothing" \
        "is installed" >&2
      exit 1
    }
    if "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null; then exit 0; fi
  fi
  echo "install.sh: attempt $attempt failed" >&2
  sleep $((attempt * 5))
done
echo "install.sh: apt-get has failed three times, for the reasons above. $by_hand" >&2
exit 1
