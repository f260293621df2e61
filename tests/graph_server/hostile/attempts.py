"""What hostile code may try: a function returns when it got through, else it raises OSError.

    python -m tests.graph_server.hostile.attempts NAME TARGETS [REACH]

tries one in a process of its own, confined by a pickled `Reach` if there is one, and prints
`through` or the error.
"""

from __future__ import annotations

import array
import ctypes
import os
import pickle
import resource
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import orjson

from penstock.graph_server.isolation.seccomp import NUMBERS, machine

THROUGH = "through"
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What the attempts aim at: everything listens, runs and may be written to."""

    tcp_port: int
    other_tcp_port: int
    udp_port: int
    unix_socket: str
    abstract_name: str
    pid: int
    secret: str
    address: int
    folder: str

    def packed(self) -> str:
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def unpack(cls, text: str) -> Targets:
        return cls(**orjson.loads(text))


Attempt: TypeAlias = Callable[[Targets], object]


def _tcp(targets: Targets) -> None:
    socket.create_connection(("127.0.0.1", targets.tcp_port)).close()


def _other_tcp(targets: Targets) -> None:
    socket.create_connection(("127.0.0.1", targets.other_tcp_port)).close()


def _listen(_: Targets) -> None:
    socket.create_server(("127.0.0.1", 0)).close()


def _udp(targets: Targets) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"rows", ("127.0.0.1", targets.udp_port))


def _udp6(_: Targets) -> None:
    socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close()


def _raw(_: Targets) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()


def _packet(_: Targets) -> None:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()


def _netlink(_: Targets) -> None:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()


def _unix_socket(targets: Targets) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(targets.unix_socket)


def _abstract_socket(targets: Targets) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"\0{targets.abstract_name}")


def _io_uring(_: Targets) -> None:
    os.close(_call("io_uring_setup", ctypes.c_uint(1), ctypes.create_string_buffer(120)))


def _signal(targets: Targets) -> None:
    os.kill(targets.pid, signal.SIGWINCH)


def _thread_signal(targets: Targets) -> None:
    _call(
        "tgkill",
        ctypes.c_int(targets.pid),
        ctypes.c_int(targets.pid),
        ctypes.c_int(signal.SIGWINCH),
    )


def _signal_group(_: Targets) -> None:
    os.kill(0, 0)


def _pidfd(targets: Targets) -> None:
    descriptor = os.pidfd_open(targets.pid)
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGWINCH)
    finally:
        os.close(descriptor)


def _limits_of_others(targets: Targets) -> None:
    resource.prlimit(targets.pid, resource.RLIMIT_NOFILE)


def _priority(_: Targets) -> None:
    os.setpriority(os.PRIO_PROCESS, 0, 5)


def _ptrace(targets: Targets) -> None:
    seize, detach, interrupt = 0x4206, 17, 0x4207
    zero = ctypes.c_void_p(0)
    _call("ptrace", ctypes.c_long(seize), ctypes.c_long(targets.pid), zero, zero)
    _call("ptrace", ctypes.c_long(interrupt), ctypes.c_long(targets.pid), zero, zero)
    os.waitpid(targets.pid, 0)
    _call("ptrace", ctypes.c_long(detach), ctypes.c_long(targets.pid), zero, zero)


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _read_memory(targets: Targets) -> None:
    _other_memory("process_vm_readv", targets)


def _write_memory(targets: Targets) -> None:
    _other_memory("process_vm_writev", targets)


def _other_memory(call: str, targets: Targets) -> None:
    here = ctypes.create_string_buffer(8)
    local = _Vector(ctypes.addressof(here), 8)
    remote = _Vector(targets.address, 8)
    one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
    vectors = (ctypes.byref(local), one, ctypes.byref(remote), one)
    _call(call, ctypes.c_int(targets.pid), *vectors, none)


def _memory_file(targets: Targets) -> None:
    with Path(f"/proc/{targets.pid}/mem").open("rb") as memory:
        memory.seek(targets.address)
        memory.read(8)


def _environment(targets: Targets) -> None:
    if targets.secret.encode() not in Path(f"/proc/{targets.pid}/environ").read_bytes():
        raise OSError("the secret is not there")


def _shell(_: Targets) -> None:
    os.execv("/bin/sh", ["sh", "-c", f"printf {THROUGH}"])


def _spawn(_: Targets) -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise OSError("it ended otherwise")


def _fork(_: Targets) -> None:
    if not (pid := os.fork()):
        os._exit(0)
    os.waitpid(pid, 0)


def _program_in_memory(_: Targets) -> None:
    descriptor = os.memfd_create("program", 0)
    os.write(descriptor, b"#!/bin/sh\nprintf through\n")
    os.execve(descriptor, ["program"], {})


def _mount(targets: Targets) -> None:
    place = ctypes.c_char_p(targets.folder.encode())
    kind = ctypes.c_char_p(b"tmpfs")
    _call("mount", kind, place, kind, ctypes.c_ulong(0), ctypes.c_void_p(0))
    _call("umount2", place, ctypes.c_int(0))


def _new_mount(_: Targets) -> None:
    os.close(_call("fsopen", ctypes.c_char_p(b"tmpfs"), ctypes.c_uint(0)))


def _change_root(targets: Targets) -> None:
    os.chroot(targets.folder)


def _user_namespace(_: Targets) -> None:
    clone_newuser = 0x10000000
    # A thread may not leave its namespace alone, so only a fork shows that it would be allowed.
    if not (pid := os.fork()):
        os._exit(0 if _libc.unshare(clone_newuser) == 0 else 1)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise OSError("unshare was refused")


def _join_namespace(targets: Targets) -> None:
    descriptor = os.pidfd_open(targets.pid)
    clone_newuts = 0x04000000
    _call("setns", ctypes.c_int(descriptor), ctypes.c_int(clone_newuts))


def _keyring(_: Targets) -> None:
    get_keyring_id, session = 0, -3
    _call("keyctl", ctypes.c_int(get_keyring_id), ctypes.c_int(session), ctypes.c_int(1))


def _bpf(_: Targets) -> None:
    map_create, array_map = 0, 2
    attributes = array.array("I", [array_map, 4, 4, 1, *[0] * 24])
    address, length = attributes.buffer_info()
    size = ctypes.c_uint(length * attributes.itemsize)
    os.close(_call("bpf", ctypes.c_int(map_create), ctypes.c_void_p(address), size))


def _performance_events(_: Targets) -> None:
    software_clock, size = 1, 112
    attributes = (ctypes.c_uint32 * 28)(software_clock, size)
    this, any_cpu, no_group = ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_int(-1)
    os.close(
        _call(
            "perf_event_open", ctypes.byref(attributes), this, any_cpu, no_group, ctypes.c_ulong(0)
        )
    )


def _page_faults(_: Targets) -> None:
    os.close(_call("userfaultfd", ctypes.c_int(0)))


def _shared_memory(_: Targets) -> None:
    private, remove = 0, 0
    number = _call("shmget", ctypes.c_int(private), ctypes.c_size_t(4096), ctypes.c_int(0o600))
    _call("shmctl", ctypes.c_int(number), ctypes.c_int(remove), ctypes.c_void_p(0))


def _message_queue(_: Targets) -> None:
    private, remove = 0, 0
    number = _call("msgget", ctypes.c_int(private), ctypes.c_int(0o600))
    _call("msgctl", ctypes.c_int(number), ctypes.c_int(remove), ctypes.c_void_p(0))


def _file_handle(targets: Targets) -> None:
    handle = ctypes.create_string_buffer(8 + 128)
    ctypes.cast(handle, ctypes.POINTER(ctypes.c_uint))[0] = 128
    mount_id = ctypes.c_int()
    path = ctypes.c_char_p(targets.folder.encode())
    at_cwd = ctypes.c_int(-100)
    _call("name_to_handle_at", at_cwd, path, handle, ctypes.byref(mount_id), ctypes.c_int(0))


def _call(name: str, *arguments: object) -> int:
    number = NUMBERS[name][("x86_64", "aarch64").index(machine())]
    result: int = _libc.syscall(ctypes.c_long(number or 0), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


ATTEMPTS: dict[str, Attempt] = {
    "abstract_socket": _abstract_socket,
    "bpf": _bpf,
    "change_root": _change_root,
    "environment": _environment,
    "file_handle": _file_handle,
    "fork": _fork,
    "io_uring": _io_uring,
    "join_namespace": _join_namespace,
    "keyring": _keyring,
    "limits_of_others": _limits_of_others,
    "listen": _listen,
    "memory_file": _memory_file,
    "message_queue": _message_queue,
    "mount": _mount,
    "netlink": _netlink,
    "new_mount": _new_mount,
    "other_tcp": _other_tcp,
    "packet": _packet,
    "page_faults": _page_faults,
    "performance_events": _performance_events,
    "pidfd": _pidfd,
    "priority": _priority,
    "program_in_memory": _program_in_memory,
    "ptrace": _ptrace,
    "raw": _raw,
    "read_memory": _read_memory,
    "shared_memory": _shared_memory,
    "shell": _shell,
    "signal": _signal,
    "signal_group": _signal_group,
    "spawn": _spawn,
    "tcp": _tcp,
    "thread_signal": _thread_signal,
    "udp": _udp,
    "udp6": _udp6,
    "unix_socket": _unix_socket,
    "user_namespace": _user_namespace,
    "write_memory": _write_memory,
}
NEED_ROOT = {"bpf", "change_root", "join_namespace", "mount", "new_mount", "packet", "raw"}


def tried(name: str, targets: Targets) -> str:
    try:
        ATTEMPTS[name](targets)
    except OSError as e:
        return f"{type(e).__name__}: {e}"
    return THROUGH


def main() -> None:
    name, targets, *reach = sys.argv[1:]
    if reach:
        pickle.loads(bytes.fromhex(reach[0])).confine()
    sys.stdout.write(tried(name, Targets.unpack(targets)))


if __name__ == "__main__":
    main()
