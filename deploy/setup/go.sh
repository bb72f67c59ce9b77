#!/usr/bin/env bash
# Builds the programs that tests and the development cluster need from Go modules, each only when asked
# for and once for each version:
#   go.sh TOOL...    e.g. go.sh etcd kube-apiserver; without arguments, lists the tools
# A tool is built in a cache that outlives clones (~/.cache/muster, else build/cache), in a folder named after
# its module's go.mod, go.sum and sources, and what its linker is told for helm, and linked from build/tools. Says
# nothing where all are there.
set -euo pipefail
cd "$(dirname "$0")/../.."

go_version=1.26.0  # the oldest that builds them all

# The module of each tool, and the package within it.
tools=deploy/cluster/tools
declare -A packages=(
  [check-dashboards]="tests/integration/chart/dashboards ."
  [coredns]="$tools/coredns github.com/coredns/coredns"
  [etcd]="$tools/etcd go.etcd.io/etcd/server/v3"
  [helm]="$tools/helm helm.sh/helm/v3/cmd/helm"
  [kueue]="$tools/kueue sigs.k8s.io/kueue/cmd/kueue"
  [kwok]="$tools/kwok sigs.k8s.io/kwok/cmd/kwok"
  [training-operator]="tests/bench/training-operator github.com/kubeflow/training-operator/cmd/training-operator.v1"
)
for tool in kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubectl kubelet; do
  packages[$tool]="$tools/kubernetes k8s.io/kubernetes/cmd/$tool"
done

if [ $# = 0 ]; then
  printf '%s\n' "${!packages[@]}" | sort
  exit
fi

cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/muster/tools
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || cache=$PWD/build/cache/tools
mkdir -p "$cache" build/tools

# Sets `go` to the machine's own command, or, where that is too old, as Debian's is, to one of the toolchains that
# Go publishes as modules.
find_go() {
  local found toolchain
  go=$(command -v go) || { echo "go.sh: expected Go (Debian's golang-go, or newer), found none" >&2; exit 1; }
  found=$("$go" env GOVERSION)
  [ "$(printf '%s\n' "go$go_version" "$found" | sort -V | head -n 1)" != "go$go_version" ] || return 0
  toolchain=golang.org/toolchain@v0.0.1-go$go_version.$("$go" env GOOS)-$("$go" env GOARCH)
  toolchain=$(cd / && "$go" mod download -json "$toolchain" | sed -n 's/^.*"Dir": "\(.*\)".*$/\1/p')
  chmod -R u+x "$toolchain/bin" "$toolchain/pkg/tool"
  go=$toolchain/bin/go
}

# What the linker is told for helm, so that it knows its own version; nothing for any other module.
helm_flags() {
  sed -n 's/^.*[[:space:]]helm.sh\/helm\/v3 \(v[^ ]*\).*$/ -X helm.sh\/helm\/v3\/internal\/version.version=\1/p' "$1/go.mod"
}

# What the linker is told, so that a program of Kubernetes, and helm, knows its own version.
ld_flags() {
  local version major minor
  version=$(sed -n 's/^.*[[:space:]]k8s.io\/kubernetes v\([^ ]*\).*$/\1/p' "$1/go.mod")
  printf '%s' "-s -w" "$(helm_flags "$1")"
  [ -n "$version" ] || return 0
  IFS=. read -r major minor _ <<<"$version"
  printf ' -X k8s.io/component-base/version.%s' "gitVersion=v$version" "gitMajor=$major" "gitMinor=$minor"
}

# build MODULE PACKAGE FILE: one at a time; another go.sh may have built it meanwhile.
build() {
  local module=$1 package=$2 file=$3
  mkdir -p "$(dirname "$file")"
  exec 9>"$cache/lock"
  flock 9
  if [ ! -x "$file" ]; then
    echo "go.sh: building $(basename "$file") ($package)"
    find_go
    CGO_ENABLED=0 "$go" build -C "$module" -mod=readonly -trimpath -ldflags "$(ld_flags "$module")" \
      -o "$file.new" "$package"
    mv "$file.new" "$file"
  fi
  exec 9>&-
}

for tool; do
  read -r module package <<<"${packages[$tool]:-}"
  [ -n "$module" ] || { echo "go.sh: no tool is called $tool; there are: $("$0" | xargs)" >&2; exit 64; }
  digest=$({ cat "$module/go.mod" "$module/go.sum"; find "$module" -name '*.go' -exec cat {} +; helm_flags "$module"; } |
    sha256sum | cut -c1-12)
  file=$cache/$(basename "$module")-$digest/$tool
  [ -x "$file" ] || build "$module" "$package" "$file"
  ln -sfn "$file" "build/tools/$tool"
done
