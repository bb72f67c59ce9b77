"""Two processes of one thread each that meet by torch.distributed's Gloo on loopback."""

import json
import os
import subprocess
import sys
import tempfile

WORKERS = 2


def _launch(script):
    """Starts the processes, the first one's answer being ours, and ends the other."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        ranks = [subprocess.Popen([sys.executable, script, *sys.argv[1:], "--rank", str(rank),
                                   "--store", os.path.join(folder, "store")])
                 for rank in reversed(range(WORKERS))]
        try:
            return ranks[-1].wait(timeout=300)
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()


def join(arguments):
    """torch.distributed, with both in it."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{arguments.store}",
                                         rank=arguments.rank, world_size=WORKERS)
    return torch.distributed


def main(parser, script, work):
    """Runs work(arguments) in both, after the parser's arguments; the first one prints what it
    returns."""
    parser.add_argument("--rank", type=int)
    parser.add_argument("--store")
    arguments = parser.parse_args()
    if arguments.rank is None:
        sys.exit(_launch(script))
    answer = work(arguments)
    if arguments.rank == 0:
        print(json.dumps(answer), flush=True)
    os._exit(0)  # without leaving the group, which waits for the other
