# shellcheck shell=bash
# The control plane: sourced by cluster.sh. Its programs are ordinary processes in the network of
# control-network; each can be ended and started again alone.

: "${here:?}" "${tools:?}" "${state:?}" "${run:?}" "${pki:?}"  # of cluster.sh
: "${control_ip:?}" "${api_ip:?}" "${dns_ip:?}" "${address_type:?}" "${every_address:?}"  # of network.sh
: "${pod_network:?}" "${service_network:?}"

control_programs=(etcd kube-apiserver kube-controller-manager kube-scheduler coredns gateway)

# make_certificates NODES: for the control plane and each node.
make_certificates() {
  local n name=kubernetes.default.svc url
  url=https://$(in_url "$control_ip"):6443
  make_authority "$pki"
  make_certificate "$pki" kube-apiserver /CN=kube-apiserver "IP:$control_ip,IP:127.0.0.1,IP:$api_ip,\
DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:$name,DNS:$name.cluster.local"
  make_certificate "$pki" admin /O=system:masters/CN=admin
  for name in kube-controller-manager kube-scheduler kube-proxy; do
    make_certificate "$pki" $name /CN=system:$name
    make_kubeconfig "$pki" $name "$url"
  done
  make_certificate "$pki" coredns /CN=coredns
  make_kubeconfig "$pki" coredns "$url"
  for n in $(seq "$1"); do
    make_certificate "$pki" "node$n" "/O=system:nodes/CN=system:node:node$n" "DNS:node$n,IP:$(node_ip "$n")"
    make_kubeconfig "$pki" "node$n" "$url"
  done
  make_kubeconfig "$pki" admin "$url" admin-inside
  make_kubeconfig "$pki" admin "https://127.0.0.1:$(free_ports 1)"
}

# The command of a program, into the array `command`.
command_of() {
  local at manager=(--leader-elect=false --bind-address=127.0.0.1 --kube-api-qps=500 --kube-api-burst=1000
    --kubeconfig="$pki/$1.kubeconfig" --authentication-kubeconfig="$pki/$1.kubeconfig"
    --authorization-kubeconfig="$pki/$1.kubeconfig")
  command=("$tools/$1")
  case $1 in
    etcd)
      command+=(--data-dir="$state/etcd" --unsafe-no-fsync --log-level=warn --listen-peer-urls=http://127.0.0.1:2380
        --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379) ;;
    kube-apiserver)
      command+=(--etcd-servers=http://127.0.0.1:2379 --secure-port=6443 --bind-address="$every_address"
        --advertise-address="$control_ip"
        --tls-cert-file="$pki/kube-apiserver.crt" --tls-private-key-file="$pki/kube-apiserver.key"
        --client-ca-file="$pki/ca.crt" "--authorization-mode=Node,RBAC"
        --enable-admission-plugins=NodeRestriction --service-cluster-ip-range="$service_network"
        --service-account-issuer=https://kubernetes.default.svc
        --service-account-key-file="$pki/sa.pub" --service-account-signing-key-file="$pki/sa.key"
        --kubelet-client-certificate="$pki/admin.crt" --kubelet-client-key="$pki/admin.key"
        --kubelet-certificate-authority="$pki/ca.crt" --kubelet-preferred-address-types=InternalIP) ;;
    kube-controller-manager)  # a node is lost after 12 s without a sign of life
      command+=("${manager[@]}" --root-ca-file="$pki/ca.crt" --use-service-account-credentials
        --service-account-private-key-file="$pki/sa.key" --cluster-cidr="$pod_network"
        --allocate-node-cidrs=false --node-monitor-period=2s --node-monitor-grace-period=12s) ;;
    kube-scheduler) command+=("${manager[@]}") ;;
    coredns)
      command=(env KUBECONFIG="$pki/coredns.kubeconfig" ADDRESS="$control_ip" DNS_SECONDS="${MUSTER_CLUSTER_DNS_SECONDS:-2}"
        "${command[@]}" -conf "$here/Corefile") ;;
    gateway)  # the API server at a port of the machine's own loopback
      at=$(in_url "$control_ip"):6443
      command=(socat "TCP-LISTEN:$(gateway_port),bind=127.0.0.1,reuseaddr,fork"
        "EXEC:nsenter --target $(process_id "$run" control-network) --net socat STDIO TCP\:${at//:/\\:}") ;;
    *) echo "cluster.sh: expected one of ${control_programs[*]}, found $1" >&2; exit 64 ;;
  esac
}

gateway_port() { sed -n 's/.*server: .*:\([0-9]*\)$/\1/p' "$pki/admin.kubeconfig"; }

start_program() {
  local command holder
  command_of "$1"
  if [ "$1" != gateway ]; then
    holder=$(process_id "$run" control-network)
    command=(nsenter --target "$holder" --net "${command[@]}")
  fi
  start_process "$run" "$1" "${command[@]}"
}

start_control_plane() {
  local program
  for program in etcd kube-apiserver gateway; do start_program $program; done
  await 120 "an API server that is ready (see $run/kube-apiserver.log)" kubectl get --raw=/readyz
  for program in kube-controller-manager kube-scheduler; do start_program $program; done
  sed "s/@DNS_IP@/$dns_ip/; s/@CONTROL_IP@/$control_ip/; s/@ADDRESS_TYPE@/$address_type/" "$here/base.yaml" |
    kubectl apply -f - >/dev/null
  start_program coredns
}
