"""A FAKE device plugin: it tells a node's real kubelet, by the device plugin API v1beta1, that the node has so many
`nvidia.com/gpu`, and gives pods nothing when they are allocated. No test that uses it computes on a GPU."""

import concurrent.futures
import pathlib
import threading

import grpc

RESOURCE = "nvidia.com/gpu"
SOCKET = "fake-gpu.sock"


def field(number, value):
    """A field of a protobuf message whose value is a string or a message, shorter than 128 bytes."""
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def device_plugins_of(cluster, node):
    """The folder of the node's kubelet for device plugins, as this machine sees it. A kubelet is known by its
    kubeconfig, because another cluster on this machine may have a node of the same name."""
    kubeconfig = str(cluster.kubeconfig.parent / f"{node}.kubeconfig")
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if arguments[0].endswith(b"/kubelet") and kubeconfig.encode() in arguments:
            return folder / "root/var/lib/kubelet/device-plugins"
    raise AssertionError(f"expected a kubelet with {kubeconfig}, found none")


class FakeGpus:
    """So many of them on a node, until the end of the with statement."""

    def __init__(self, cluster, node, count):
        self.folder = device_plugins_of(cluster, node)
        self.devices = b"".join(field(1, field(1, f"fake-{i}".encode()) + field(2, b"Healthy")) for i in range(count))
        self.ended = threading.Event()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", {
            "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(lambda request, context: b""),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(self.list_and_watch),
            # An empty answer for the pod's only container that asks for GPUs.
            "Allocate": grpc.unary_unary_rpc_method_handler(lambda request, context: field(1, b"")),
        })])

    def list_and_watch(self, request, context):
        yield self.devices
        self.ended.wait()

    def __enter__(self):
        (self.folder / SOCKET).unlink(missing_ok=True)
        self.server.add_insecure_port(f"unix:{self.folder / SOCKET}")
        self.server.start()
        with grpc.insecure_channel(f"unix:{self.folder / 'kubelet.sock'}") as channel:
            register = channel.unary_unary("/v1beta1.Registration/Register")
            register(field(1, b"v1beta1") + field(2, SOCKET.encode()) + field(3, RESOURCE.encode()), timeout=30)
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.server.stop(None).wait()
        (self.folder / SOCKET).unlink(missing_ok=True)
