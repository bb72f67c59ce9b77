"""The cluster itself: what all other tests take for granted."""

from cluster import condition, eventually

NODES = ("node1", "node2")


def pod(name, node, command, **spec):
    """A pod of busybox on a node, named in the headless service `pods`."""
    container = {"name": "main", "image": "localhost/busybox:muster", "command": ["sh", "-c", command]}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "pods"}},
        "spec": {"nodeName": node, "hostname": name, "subdomain": "pods", "containers": [container],
                 "terminationGracePeriodSeconds": 0, **spec},
    }


HEADLESS = {
    "apiVersion": "v1", "kind": "Service", "metadata": {"name": "pods"},
    "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": "pods"},
             "ports": [{"name": "http", "port": 8000}]},
}


def has_ready(cluster, node, status):
    return condition(cluster.get("node", node), "Ready") == status


def test_nodes_are_ready(cluster):
    nodes = cluster.get("nodes")
    assert [node["metadata"]["name"] for node in nodes] == list(NODES)
    assert [condition(node, "Ready") for node in nodes] == ["True", "True"]


def test_pods_reach_each_other_by_headless_dns(cluster, namespace):
    cluster.apply(HEADLESS, namespace=namespace)
    serve = "echo from $(hostname) >index.html; httpd -f -p 8000"
    for name, node in zip(("first", "second"), NODES):
        cluster.apply(pod(name, node, "cd /tmp; " + serve), namespace=namespace)
    cluster.kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s", namespace=namespace)
    for here, there in (("first", "second"), ("second", "first")):
        host = f"{there}.pods.{namespace}.svc.cluster.local"
        fetch = ["exec", here, "--", "timeout", "5", "wget", "-q", "-O", "-", f"http://{host}:8000/"]
        eventually(lambda: cluster.kubectl(*fetch, namespace=namespace) == f"from {there}\n")


def test_pods_reach_the_api_by_its_service(cluster, namespace):
    fetch = "nc -w 5 kubernetes.default.svc.cluster.local 443 </dev/null && echo reached"
    cluster.apply(pod("client", "node1", fetch, restartPolicy="OnFailure"), namespace=namespace)
    eventually(lambda: cluster.kubectl("logs", "client", namespace=namespace) == "reached\n")


def test_a_killed_node_is_noticed_and_comes_back(cluster):
    cluster("killnode", "node2")
    eventually(lambda: has_ready(cluster, "node2", "Unknown"))
    cluster("restartnode", "node2")
    eventually(lambda: has_ready(cluster, "node2", "True"))


def test_a_node_that_is_cut_off_goes_on(cluster, namespace):
    count = "n=0; while sleep 0.2; do n=$((n + 1)); echo $n; done"
    cluster.apply(pod("counter", "node2", count), namespace=namespace)
    cluster.kubectl("wait", "--for=condition=Ready", "pod/counter", "--timeout=60s", namespace=namespace)
    cluster("partition", "node2")
    eventually(lambda: has_ready(cluster, "node2", "Unknown"))
    cluster("heal", "node2")
    eventually(lambda: has_ready(cluster, "node2", "True"))
    log = cluster.kubectl("logs", "counter", namespace=namespace).split()
    assert log == [str(n + 1) for n in range(len(log))]
    assert len(log) > 10  # the node was away for longer than two seconds


def test_the_api_server_comes_back_with_all_it_knew(cluster, namespace):
    cluster.kubectl("create", "configmap", "known", "--from-literal=key=value", namespace=namespace)
    cluster("stop", "kube-apiserver", "KILL")
    cluster("start", "kube-apiserver")
    known = eventually(lambda: cluster.get("configmap", "known", namespace=namespace))
    assert known["data"] == {"key": "value"}
