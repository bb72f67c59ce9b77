# shellcheck shell=bash
# The cluster's network: sourced by cluster.sh. The control plane and every node have a network namespace
# of their own, held by a process; a bridge in the control plane's joins them, and nothing of it is visible
# in the machine's own namespace. With their processes namespaces, links and routes are gone.
#
#   10.250.0.1      the control plane      10.250.0.1N    node N
#   10.244.N.0/24   pods of node N         10.96.0.0/16   services (10.96.0.1 the API, 10.96.0.10 DNS)
#
# With MUSTER_CLUSTER_IPV6=1 at its start, a cluster has no other addresses of IPv4 than 127.0.0.1:
#
#   fd50::1           the control plane    fd50::1N       node N
#   fd44:0:0:N::/64   pods of node N       fd96::/112     services (fd96::1 the API, fd96::a DNS)

: "${run:?}" "${state:?}"  # of cluster.sh

# Sets the variables of the cluster's addresses, which the scripts beside use.
# shellcheck disable=SC2034
choose_addresses() {
  if [ -n "$1" ]; then
    control_ip=fd50::1 api_ip=fd96::1 dns_ip=fd96::a address_type=IPv6 every_address=::
    pod_network=fd44::/48 service_network=fd96::/112 prefix=64
  else
    control_ip=10.250.0.1 api_ip=10.96.0.1 dns_ip=10.96.0.10 address_type=IPv4 every_address=0.0.0.0
    pod_network=10.244.0.0/16 service_network=10.96.0.0/16 prefix=24
  fi
}

choose_addresses "$(cat "$state/ipv6" 2>/dev/null || echo "${MUSTER_CLUSTER_IPV6:-}")"

is_ipv6() { [ "$address_type" = IPv6 ]; }
node_ip() { if is_ipv6; then echo "fd50::$((10 + $1))"; else echo "10.250.0.$((10 + $1))"; fi; }
pods_of() { if is_ipv6; then echo "fd44:0:0:$1::/64"; else echo "10.244.$1.0/24"; fi; }
# in_url ADDRESS: as a URL has it.
in_url() { if is_ipv6; then echo "[$1]"; else echo "$1"; fi; }
# Nobody else has the addresses: IPv6 need not wait until it has asked.
at_once() { if is_ipv6; then echo nodad; fi; }

# in_network NAME COMMAND...: in the network of the process NAME.
in_network() {
  local pid
  pid=$(process_id "$run" "$1") || { echo "cluster.sh: expected $1 to run, found that it does not" >&2; return 1; }
  shift
  nsenter --target "$pid" --net "$@"
}

# make_control_network NODES: the control plane's namespace, with the bridge and a route to each node's pods.
make_control_network() {
  start_process "$run" control-network unshare --net sleep infinity
  await 10 "a network namespace" in_own_network control-network
  in_network control-network ip -batch - <<IP
link set lo up
link add nodes type bridge
addr add $control_ip/$prefix dev nodes $(at_once)
link set nodes up
$(for n in $(seq "$1"); do echo "route add $(pods_of "$n") via $(node_ip "$n")"; done)
IP
}

# Whether the process NAME has left the namespace of this one.
in_own_network() {
  local pid
  pid=$(process_id "$run" "$1") && [ "$(readlink "/proc/$pid/ns/net")" != "$(readlink /proc/self/ns/net)" ]
}

# connect_node N NODES: a cable between the node's namespace and the bridge.
connect_node() {
  local n=$1 nodes=$2 pid other
  pid=$(process_id "$run" "node$n")
  in_network control-network ip link add "node$n" type veth peer name eth0 netns "$pid"
  in_network control-network ip link set "node$n" master nodes up
  in_network "node$n" ip -batch - <<IP
link set lo up
addr add $(node_ip "$n")/$prefix dev eth0 $(at_once)
link set eth0 up
route add default via $control_ip
$(for other in $(seq "$nodes"); do
  [ "$other" = "$n" ] || echo "route add $(pods_of "$other") via $(node_ip "$other")"
done)
IP
  in_network "node$n" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
}
