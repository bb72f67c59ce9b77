#!/usr/bin/env bash
# A Kubernetes API server and its etcd, alone, on free ports of 127.0.0.1: what tests of a client need.
#   api-server.sh start FOLDER          make FOLDER and start both; returns when they are ready
#   api-server.sh kill FOLDER PROGRAM   kill -9; PROGRAM is etcd or kube-apiserver
#   api-server.sh run FOLDER PROGRAM    start it again, on the same port with the same data
#   api-server.sh stop FOLDER           end both; the folder stays
# and in pieces, for who watches over the processes:
#   api-server.sh prepare FOLDER        ports, certificates, kubeconfig
#   api-server.sh exec FOLDER PROGRAM   become it
#   api-server.sh await FOLDER          until the API server is ready, at most five minutes
# In FOLDER: kubeconfig (an administrator's), pki/, etcd/, logs PROGRAM.log, addresses.sh. No controller runs,
# so there are no service accounts but those one makes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tools=$here/../../build/tools
# shellcheck source=deploy/cluster/certificates.sh
. "$here/certificates.sh"
# shellcheck source=deploy/cluster/processes.sh
. "$here/processes.sh"

prepare() {
  mkdir -p "$folder"
  local ports server
  mapfile -t ports < <(free_ports 2)
  server=https://127.0.0.1:${ports[1]}
  printf '%s\n' "etcd=http://127.0.0.1:${ports[0]}" "server=$server" >"$folder/addresses.sh"
  make_authority "$folder/pki"
  make_certificate "$folder/pki" kube-apiserver /CN=kube-apiserver IP:127.0.0.1,DNS:localhost
  make_certificate "$folder/pki" admin /O=system:masters/CN=admin
  make_kubeconfig "$folder/pki" admin "$server"
  ln -sf pki/admin.kubeconfig "$folder/kubeconfig"
}

exec_program() {
  local etcd server pki=$folder/pki
  # shellcheck disable=SC1091
  . "$folder/addresses.sh"
  case $1 in
    etcd)
      exec "$tools/etcd" --data-dir "$folder/etcd" --unsafe-no-fsync --listen-client-urls "$etcd" \
        --advertise-client-urls "$etcd" --listen-peer-urls http://127.0.0.1:0 --log-level warn ;;
    kube-apiserver)
      exec "$tools/kube-apiserver" --etcd-servers "$etcd" --bind-address 127.0.0.1 --secure-port "${server##*:}" \
        --tls-cert-file "$pki/kube-apiserver.crt" --tls-private-key-file "$pki/kube-apiserver.key" \
        --client-ca-file "$pki/ca.crt" --authorization-mode RBAC --endpoint-reconciler-type none \
        --service-account-key-file "$pki/sa.pub" --service-account-signing-key-file "$pki/sa.key" \
        --service-account-issuer https://kubernetes.default.svc --service-cluster-ip-range 10.96.0.0/16 \
        --disable-admission-plugins ServiceAccount \
        --enable-admission-plugins OwnerReferencesPermissionEnforcement ;;
    *) usage ;;
  esac
}

run() {
  start_process "$folder" "$1" "$here/api-server.sh" exec "$folder" "$1"
}

is_ready() {
  local pki=$folder/pki
  curl -sf --max-time 5 --cacert "$pki/ca.crt" --cert "$pki/admin.crt" --key "$pki/admin.key" "$1/readyz"
}

await_ready() {
  local server
  # shellcheck disable=SC1091
  . "$folder/addresses.sh"
  await 300 "an API server that is ready at $server" is_ready "$server" && return
  tail -n 5 "$folder/kube-apiserver.log" >&2
  return 1
}

usage() {
  sed -n 's/^# \{0,1\}//; 2,12p' "$0" >&2
  exit 64
}

[ $# -ge 2 ] || usage
mkdir -p "$2"
folder=$(cd "$2" && pwd)
case $1 in
  start) prepare && run etcd && run kube-apiserver && await_ready ;;
  kill) end_process "$folder" "${3:?}" KILL ;;
  run) run "${3:?}" ;;
  stop) end_process "$folder" kube-apiserver && end_process "$folder" etcd ;;
  prepare) prepare ;;
  exec) exec_program "${3:?}" ;;
  await) await_ready ;;
  *) usage ;;
esac
