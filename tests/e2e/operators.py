"""The operators of the chart's release."""

from cluster import condition, eventually


def operators(cluster, muster):
    return cluster.get("pods", "-l", "app.kubernetes.io/component=operator", namespace=muster)


def leader(cluster, muster):
    """The pod that holds the lease; None while nobody does."""
    holder = cluster.get("lease", "muster", namespace=muster)["spec"].get("holderIdentity") or ""
    found = [pod for pod in operators(cluster, muster) if pod["metadata"]["name"] == holder.rsplit("_", 1)[0]]
    return found[0] if found else None


def restarts(pod):
    return sum(status["restartCount"] for status in pod["status"].get("containerStatuses", []))


def await_operators(cluster, muster, restarted=None):
    """Until both are ready, and the container of `restarted` has been since it was looked at, and one leads."""
    def all_well():
        pods = operators(cluster, muster)
        if restarted:
            [again] = [pod for pod in pods if pod["metadata"]["uid"] == restarted["metadata"]["uid"]]
            assert restarts(again) > restarts(restarted)
        return len(pods) == 2 and all(condition(pod, "Ready") == "True" for pod in pods) and leader(cluster, muster)
    eventually(all_well, within=120)


def log(cluster, muster):
    """What the operators' containers have said since they were started last."""
    return cluster.kubectl("logs", "-l", "app.kubernetes.io/component=operator", "--tail=-1", namespace=muster)
