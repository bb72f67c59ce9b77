"""Hosts without Kubernetes: network namespaces on a bridge, each with an sshd. They share this machine's files."""

import os
import shutil
import subprocess

import yaml
from cluster import ROOT, eventually, run

PROGRAM = ROOT / os.environ.get("BINARIES", "build/release/bin") / "muster"
SSHD = """ListenAddress {address}
HostKey {folder}/host-key
AuthorizedKeysFile {folder}/key.pub
StrictModes no
PasswordAuthentication no
UsePAM no
MaxStartups {startups}
PidFile none
"""


class Rack:
    def __init__(self, rack, folder, names, slots=4, startups="10:30:100", ipv6=False):
        """`rack`: a word that no other rack has that is up. `startups`: how many connections that are not let in yet an sshd takes, as sshd_config(5) says of MaxStartups.
        `ipv6`: the hosts have no address of IPv4."""
        self.head = f"muster-rack-{rack}"  # the namespace where `muster run` is started
        self.folder, self.names = folder, names
        self.ipv6 = ipv6
        self.startups = startups
        self.slots = slots
        self.daemons = {}

    def up(self):
        for key in ("key", "host-key"):
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / key])
        os.makedirs("/run/sshd", exist_ok=True)
        self._namespace(self.head)
        self.ip(self.head, "link", "add", "bridge", "type", "bridge")
        self._give(self.head, "fd77::1" if self.ipv6 else "10.77.0.1", "bridge")
        self.ip(self.head, "link", "set", "bridge", "up")
        known = (self.folder / "host-key.pub").read_text()
        (self.folder / "known").write_text("".join(f"{self.address(name)} {known}" for name in self.names))
        for name in self.names:
            self._add(name)
        for name in self.names:
            log = self.folder / f"sshd-{name}.log"
            eventually(lambda log=log: "Server listening" in log.read_text(), within=10)
        self.write("hosts.yaml", self.names, self.slots)

    def write(self, file, names, slots=4, **fields):
        """A file for --hosts. Returns its path."""
        hosts = [{"name": name, "address": self.address(name), "ssh": f"root@{self.address(name)}", "slots": slots}
                 for name in names]
        ssh = ["ssh", "-F", "none", "-i", str(self.folder / "key"), "-o", f"UserKnownHostsFile={self.folder}/known"]
        (self.folder / file).write_text(yaml.safe_dump({"hosts": hosts, "ssh": ssh, "muster": str(PROGRAM), **fields}))
        return self.folder / file

    def address(self, name):
        number = 10 + self.names.index(name)
        return f"fd77::{number}" if self.ipv6 else f"10.77.0.{number}"

    def _give(self, space, address, device):
        # Nobody else has it: IPv6 need not wait until it has asked.
        self.ip(space, "address", "add", *((f"{address}/64", "nodad") if self.ipv6 else (f"{address}/24",)),
                "dev", device)

    def space(self, name):
        return f"{self.head}-{name}"

    @staticmethod
    def ip(space, *words):
        run(["ip", "-n", space, *words])

    def _namespace(self, space):
        subprocess.run(["ip", "netns", "delete", space], stderr=subprocess.DEVNULL, check=False)
        run(["ip", "netns", "add", space])
        self.ip(space, "link", "set", "lo", "up")

    def _add(self, name):
        space = self.space(name)
        self._namespace(space)
        self.ip(self.head, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", space)
        self.ip(self.head, "link", "set", name, "master", "bridge", "up")
        self._give(space, self.address(name), "eth0")
        self.ip(space, "link", "set", "eth0", "up")
        config = self.folder / f"sshd-{name}"
        config.write_text(SSHD.format(address=self.address(name), folder=self.folder, startups=self.startups))
        self.daemons[name] = subprocess.Popen(
            ["ip", "netns", "exec", space, shutil.which("sshd", path="/usr/sbin"), "-D", "-e", "-f", config],
            stderr=(self.folder / f"sshd-{name}.log").open("wb"))

    def unplug(self, name):
        self.ip(self.head, "link", "set", name, "down")

    def plug(self, name):
        self.ip(self.head, "link", "set", name, "up")

    def processes(self, name):
        """The command lines of what runs on a host, but for sshd's own."""
        pids = run(["ip", "netns", "pids", self.space(name)]).split()
        lines = []
        for pid in pids:
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().decode().split("\0")
            except OSError:
                continue
            if not words[0].startswith(("sshd", "/usr/sbin/sshd")):
                lines.append(" ".join(words))
        return [line for line in lines if line.strip()]

    def command(self, job, directory, *words, hosts="hosts.yaml"):
        return ["ip", "netns", "exec", self.head, PROGRAM, "run", job, "--hosts", self.folder / hosts, "--directory",
                directory, *words]

    def start(self, job, directory, *words, hosts="hosts.yaml"):
        """`muster run --hosts`, with its output in the directory's .log."""
        return subprocess.Popen(
            self.command(job, directory, *words, hosts=hosts),
            stdout=directory.with_suffix(".log").open("wb"), stderr=subprocess.STDOUT,
            # One kernel serves all these hosts: the replicas must not find that out.
            env={**os.environ, "MUSTER_SHARED_MEMORY": "0"})

    def are_left(self):
        eventually(lambda: not any(self.processes(name) for name in self.names), within=10)

    def end_all(self):
        """What a test that has failed may have left."""
        for space in (self.head, *map(self.space, self.names)):
            pids = run(["ip", "netns", "pids", space]).split()
            daemons = {str(daemon.pid) for daemon in self.daemons.values()}
            subprocess.run(["kill", "-9", *(pid for pid in pids if pid not in daemons)],
                           stderr=subprocess.DEVNULL, check=False)

    def down(self):
        for daemon in self.daemons.values():
            daemon.terminate()
            daemon.wait()
        for space in (*map(self.space, self.names), self.head):
            found = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True, check=False)
            subprocess.run(["kill", "-9", *found.stdout.split()], stderr=subprocess.DEVNULL, check=False)
            subprocess.run(["ip", "netns", "delete", space], stderr=subprocess.DEVNULL, check=False)
