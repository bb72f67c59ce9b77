#!/usr/bin/env bash
# A Kubernetes of several nodes on this machine, for development and end-to-end tests. Needs root.
#   cluster.sh up [NODES]              2 nodes: node1, node2
#   cluster.sh down                    end it and remove all it made
#   cluster.sh kubeconfig              print the path of an administrator's kubeconfig
#   cluster.sh load IMAGE.tar...       give every node an image, a docker-archive; there is no registry
#   cluster.sh killnode NODE           all that runs on the node dies at once, as by loss of power
#   cluster.sh restartnode NODE        it boots, again or after killnode, with its disk
#   cluster.sh partition NODE          cut its cable
#   cluster.sh heal NODE               mend it
#   cluster.sh stop PROGRAM [SIGNAL]   end a program of the control plane, such as kube-apiserver, by TERM or SIGNAL
#   cluster.sh start PROGRAM           start it again
#   cluster.sh enter COMMAND...        run a command in the control plane's network, from where pods can be reached
# Everything lies in build/cluster/NAME and in namespaces of its own; NAME is $MUSTER_CLUSTER, or muster.
# Images that pods can use from the start: localhost/busybox:muster. Claims that name no class get one of eight
# folders in build/cluster/NAME/volumes. Answers of DNS are at most MUSTER_CLUSTER_DNS_SECONDS old (2), by when
# coredns is started. With MUSTER_CLUSTER_IPV6=1 a cluster is brought up without IPv4.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tools=$(cd "$here/../.." && pwd)/build/tools
cluster=${MUSTER_CLUSTER:-muster}
state=$(cd "$here/../.." && pwd)/build/cluster/$cluster
run=$state/run
pki=$state/pki
# shellcheck source=deploy/cluster/processes.sh
. "$here/processes.sh"
# shellcheck source=deploy/cluster/certificates.sh
. "$here/certificates.sh"
# shellcheck source=deploy/cluster/network.sh
. "$here/network.sh"
# shellcheck source=deploy/cluster/control-plane.sh
. "$here/control-plane.sh"

usage() {
  sed -n '2,18s/^# \{0,1\}//p' "$0" >&2
  exit 64
}

fail() { echo "cluster.sh: $*" >&2; exit 1; }

kubectl() { "$tools/kubectl" --kubeconfig "$pki/admin.kubeconfig" --cache-dir "$state/kubectl" "$@"; }

# The numbers of all nodes.
nodes() { seq "$(cat "$state/nodes")"; }

# number_of nodeN: N.
number_of() {
  local n
  for n in $(nodes); do
    [ "node$n" != "$1" ] || { echo "$n"; return; }
  done
  fail "expected one of$(nodes | sed 's/^/ node/' | tr -d '\n'), found $1"
}

# Busybox under all its names: for pods of tests, and, asleep, the process that holds a pod's namespaces.
make_busybox_image() {
  local image=$state/busybox store=(--root "$state/buildah" --runroot "$state/buildah-run" --storage-driver vfs)
  mkdir -p "$image/bin" "$image/tmp"
  cp /bin/busybox "$image/bin/"
  busybox --list | grep -vx busybox | xargs -I{} ln -s busybox "$image/bin/{}"
  printf 'FROM scratch\nCOPY . /\nCMD ["/bin/sleep", "infinity"]\n' >"$state/Containerfile"
  buildah "${store[@]}" bud --isolation chroot --quiet --tag localhost/busybox:muster \
    --file "$state/Containerfile" "$image" >/dev/null
  buildah "${store[@]}" push --quiet localhost/busybox:muster \
    "docker-archive:$state/busybox.tar:localhost/busybox:muster"
  rm -rf "$image" "$state/buildah" "$state/buildah-run"
}

start_node() {
  local n=$1
  mkdir -p "$state/node$n"
  start_process "$run" "node$n" unshare --net --mount --pid --uts --fork --kill-child --mount-proc \
    "$here/node.sh" "node$n" "$(node_ip "$n")" "$(pods_of "$n")" "$dns_ip" "$cluster-node$n" "$state/node$n" "$pki"
  await 10 "a network namespace" in_own_network "node$n"
  connect_node "$n" "$(cat "$state/nodes")"
}

# The kernel ends all processes of the node with its first.
kill_node() {
  local pid
  pid=$(process_id "$run" "node$1") || return 0
  pkill -KILL -P "$pid" || true
  end_process "$run" "node$1" KILL
}

# Storage that all nodes share, for claims that name no class: folders of this machine.
make_volumes() {
  local n
  for n in $(seq 8); do
    install -d -m 777 "$state/volumes/$n"
    cat <<END
apiVersion: v1
kind: PersistentVolume
metadata: {name: shared-$n}
spec:
  capacity: {storage: 10Gi}
  accessModes: [ReadWriteMany, ReadWriteOnce]
  storageClassName: shared
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: $state/volumes/$n}
---
END
  done | kubectl apply -f - >/dev/null
}

up() {
  local count=$1 n
  [ ! -e "$state" ] || fail "expected no cluster in $state, found one; end it by: cluster.sh down"
  mkdir -p "$run"
  echo "$count" >"$state/nodes"
  echo "${MUSTER_CLUSTER_IPV6:-}" >"$state/ipv6"
  make_certificates "$count"
  make_busybox_image
  make_control_network "$count"
  start_control_plane
  for n in $(nodes); do start_node "$n"; done
  await 120 "$count nodes to register (see $run/node1.log)" all_registered
  kubectl wait --for=condition=Ready node --all --timeout=120s >/dev/null
  await 60 "a default service account" kubectl get serviceaccount default
  make_volumes
}

all_registered() { [ "$(kubectl get nodes -o name | wc -l)" = "$(cat "$state/nodes")" ]; }

down() {
  local n program
  [ -e "$state" ] || return 0
  for n in $(nodes); do kill_node "$n"; done
  for program in "${control_programs[@]}" control-network; do end_process "$run" "$program" KILL; done
  find /sys/fs/cgroup -depth -type d -path "*/$cluster-node[0-9]*" -exec rmdir {} +
  rm -rf "$state"
}

load() {
  local n image imports=()
  for image; do
    for n in $(nodes); do
      ctr --address "$state/node$n/containerd.sock" --namespace k8s.io images import "$image" >/dev/null &
      imports+=($!)
    done
  done
  for n in "${imports[@]}"; do wait "$n"; done
}

[ "$(id -u)" = 0 ] || fail "expected to be run by root, found $(id -un)"
action=${1:-}
[ $# = 0 ] || shift
[ "$action" = up ] || [ "$action" = down ] || [ -e "$run" ] || [ -z "$action" ] || fail "no cluster is up in $state"
case $action in
  up) up "${1:-2}" ;;
  down) down ;;
  kubeconfig) echo "$pki/admin.kubeconfig" ;;
  load) load "$@" ;;
  killnode) kill_node "$(number_of "${1:?}")" ;;
  restartnode) n=$(number_of "${1:?}"); kill_node "$n"; start_node "$n" ;;
  partition) in_network control-network ip link set "node$(number_of "${1:?}")" down ;;
  heal) in_network control-network ip link set "node$(number_of "${1:?}")" up ;;
  stop) end_process "$run" "${1:?}" "${2:-TERM}" ;;
  start) start_program "${1:?}" ;;
  enter) in_network control-network env KUBECONFIG="$pki/admin-inside.kubeconfig" "$@" ;;
  *) usage ;;
esac
