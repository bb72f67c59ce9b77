#!/usr/bin/env bash
# A node: the first process of namespaces of its own (processes, mounts, network, host name), in which it starts
# containerd, kubelet and kube-proxy. With it ends everything that runs on the node, and with any of the three ends
# it. Started by cluster.sh:
#   node.sh NAME ADDRESS PODS DNS CGROUP FOLDER PKI
set -euo pipefail
name=$1 address=$2 pods=$3 dns=$4 cgroup=$5 folder=$6 pki=$7
here=$(cd "$(dirname "$0")" && pwd)
tools=$here/../../build/tools
# shellcheck source=deploy/cluster/processes.sh
. "$here/processes.sh"

# What is usually the machine's is the node's: its name; sockets and CNI's leases, empty after each start; logs;
# the folder where a kubelet, wherever its own is, waits for device plugins; and what the kubelet wants the kernel's
# settings to be, which it finds here and so leaves the kernel's alone.
leave_the_machine_alone() {
  local setting file
  hostname "$name"
  mkdir -p "$folder/log" "$folder/sysctl" /var/lib/kubelet
  mount -t tmpfs tmpfs /run
  mount -t tmpfs tmpfs /var/lib/kubelet
  mount --bind "$folder/log" /var/log
  for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    file=$folder/sysctl/$(basename "${setting%=*}")
    echo "${setting#*=}" >"$file"
    mount --bind "$file" "/proc/sys/${setting%=*}"
  done
}

# The kubelet's cgroups lie below one of the node's own, in each hierarchy of cgroup v1, or in the one of v2.
make_cgroups() {
  local hierarchy file
  for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
    [ -e "$hierarchy/cgroup.procs" ] || continue
    mkdir -p "$hierarchy/$cgroup"
    for file in cpuset.cpus cpuset.mems; do
      [ ! -e "$hierarchy/$file" ] || cat "$hierarchy/$file" >"$hierarchy/$cgroup/$file"
    done
    [ "$hierarchy" != /sys/fs/cgroup ] || break
  done
}

# shellcheck disable=SC2317  # it is await that calls it
has_address() { [[ $(ip address show) == *" $address/"* ]]; }

write_containerd() {
  local everywhere=0.0.0.0/0
  [[ $address != *:* ]] || everywhere=::/0
  mkdir -p "$folder/cni"
  cat >"$folder/cni/pods.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "ipam":
  {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "$pods"}]], "routes": [{"dst": "$everywhere"}]}}]}
JSON
  # restrict_oom_score_adj: where the cluster has no CAP_SYS_RESOURCE, runc may not lower a sandbox's score.
  cat >"$folder/containerd.toml" <<TOML
version = 2
root = "$folder/containerd"
[grpc]
  address = "$folder/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "$folder/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/busybox:muster"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$folder/cni"
TOML
}

write_kubelet() {
  : >"$folder/resolv.conf"
  cat >"$folder/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: "$address"
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $pki/ca.crt}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /$cgroup
clusterDNS: ["$dns"]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix://$folder/containerd.sock
enforceNodeAllocatable: []
evictionHard: {memory.available: 100Mi, nodefs.available: "1%", imagefs.available: "1%"}
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100  # no registry would give a lost image back
nodeLeaseDurationSeconds: 8
nodeStatusUpdateFrequency: 2s
resolvConf: $folder/resolv.conf
tlsCertFile: $pki/$name.crt
tlsPrivateKeyFile: $pki/$name.key
volumePluginDir: $folder/volume-plugins
YAML
}

write_proxy() {
  cat >"$folder/kube-proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: "$address"
clientConnection: {kubeconfig: $pki/kube-proxy.kubeconfig}
clusterCIDR: "$pods"
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
hostnameOverride: $name
mode: iptables
YAML
}

leave_the_machine_alone
make_cgroups
write_containerd
write_kubelet
write_proxy
await 60 "the address $address" has_address
containerd --config "$folder/containerd.toml" &
await 60 "containerd to answer" ctr --address "$folder/containerd.sock" version
ctr --address "$folder/containerd.sock" --namespace k8s.io images import "$folder/../busybox.tar"
"$tools/kubelet" --config "$folder/kubelet.yaml" --kubeconfig "$pki/$name.kubeconfig" \
  --hostname-override "$name" --node-ip "$address" --root-dir "$folder/kubelet" &
"$tools/kube-proxy" --config "$folder/kube-proxy.yaml" &
wait -n || true
echo "node.sh: $name lost one of its programs, and ends" >&2
exit 1
