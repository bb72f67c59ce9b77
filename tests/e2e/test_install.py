"""The chart, installed: the operators, and the chart's own test."""

from cluster import eventually


def test_operators_are_on_both_nodes_and_one_leads(cluster, muster):
    pods = cluster.get("pods", "-l", "app.kubernetes.io/component=operator", namespace=muster)
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node1", "node2"}
    names = [pod["metadata"]["name"] for pod in pods]
    holder = eventually(lambda: cluster.get("lease", "muster", namespace=muster)["spec"].get("holderIdentity"))
    assert holder.rsplit("_", 1)[0] in names


def test_the_charts_own_test_passes(cluster, muster):
    assert "Succeeded" in cluster.helm("test", "muster", "--timeout", "100s", namespace=muster)
