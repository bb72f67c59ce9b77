#!/usr/bin/env bash
# Runs commands in a clone of HEAD on a bare Debian, as a newcomer's machine is:
#   bare.sh SUITE COMMAND...    e.g. bare.sh trixie "make run" "make test"
#   bare.sh --here COMMAND...   in this very checkout, with what it has built and with the caches of the user, on a bare
#                               system of the release that this machine has: what is missing then is in no list
# It makes the system in build/bare/SUITE anew each time, with no packages but make, git and ca-certificates, and
# runs the commands there one after another, until one fails, with no variable set but those by which this machine
# reaches package registries. The system stays until the next run: to look into it, run
#   sudo chroot build/bare/SUITE
# Works as root, and for others where user namespaces and the ranges of /etc/subuid and /etc/subgid allow it.
# MIRROR names another mirror of Debian.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ $# -ge 2 ] || { echo 'usage: bare.sh SUITE|--here COMMAND...    e.g. bare.sh trixie "make run"' >&2; exit 64; }
suite=$1
shift
here=
if [ "$suite" = --here ]; then
  here=1
  suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
fi
root=$PWD/build/bare/$suite

mkdir -p build/bare
if [ "${MUSTER_BARE_INSIDE:-}" = "" ]; then
  exec 9>"$root.lock"
  flock --nonblock 9 || { echo "bare.sh: another run is using build/bare/$suite" >&2; exit 69; }
  command -v mmdebstrap >/dev/null || { echo "bare.sh: expected mmdebstrap, a Debian package; found none" >&2; exit 69; }
  # What is mounted here, and what the commands start, ends with this process.
  namespaces=(unshare --mount --pid --fork --kill-child)
  [ "$(id -u)" = 0 ] || namespaces+=(--map-root-user --map-auto)
  started=$SECONDS
  mmdebstrap --quiet --variant=minbase --include=make,git,ca-certificates "$suite" "$root.tar" ${MIRROR:+"$MIRROR"}
  echo "bare.sh: $suite with $(tar -tf "$root.tar" | wc -l) files, $((SECONDS - started)) s"
  MUSTER_BARE_INSIDE=1 exec "${namespaces[@]}" deploy/setup/bare.sh "$([ "$here" ] && echo --here || echo "$suite")" "$@"
fi

# From here on this process has namespaces of its own, in which it is root.
rm -rf --one-file-system "$root"
mkdir -p "$root"
tar -C "$root" --exclude='./dev/*' -xf "$root.tar"
rm "$root.tar"
# buildah, which makes images there, expects its root to be a mount.
mount --bind "$root" "$root"
for folder in sys dev; do
  mount --rbind --make-rslave "/$folder" "$root/$folder"
done
mount -t proc proc "$root/proc"
# The names and certificates by which this machine reaches registries.
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/hosts "$root/etc/hosts"
[ ! -d /usr/local/share/ca-certificates ] ||
  cp -rL /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
[ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/pip.conf"
variables=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root)
for name in {http,https,ftp,no,all}_proxy {HTTP,HTTPS,FTP,NO,ALL}_PROXY PIP_{INDEX_URL,EXTRA_INDEX_URL,CERT,TRUSTED_HOST} \
  GO{PROXY,SUMDB,NOSUMDB,NOSUMCHECK,PRIVATE,INSECURE}; do
  [ -z "${!name:-}" ] || variables+=("$name=${!name}")
done

if [ "$here" ]; then
  folder=$PWD
  cache=${XDG_CACHE_HOME:-$HOME/.cache}
  mkdir -p "$root$folder" "$cache" "$root/root/.cache"
  mount --bind "$folder" "$root$folder"
  mount --bind "$cache" "$root/root/.cache"
else
  folder=/root/muster
  git -c safe.directory='*' clone --quiet --no-local . "$root$folder"
fi
inside() {
  chroot "$root" /usr/bin/env -i "${variables[@]}" /bin/bash -c "$1"
}
inside "update-ca-certificates" >/dev/null 2>&1
for command; do
  started=$SECONDS
  echo "bare.sh: $suite: $command"
  code=0
  inside "cd $folder && $command" </dev/null || code=$?
  echo "bare.sh: $suite: $command: ended with $code after $((SECONDS - started)) s"
  [ "$code" = 0 ] || exit "$code"
done
