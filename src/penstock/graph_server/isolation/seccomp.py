"""seccomp: a thread gives up system calls for good, by a BPF program made here.

Landlock does not know UDP, raw sockets, ptrace of a child, io_uring or mounts; this does. A
refused call fails with EPERM, so that a library that only tries one goes on without it. The
program compares numbers, so it exists only for the machines whose numbers are listed here;
calls of a foreign machine (32 bit, x32) end the process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020000
_CLONE_THREAD = 0x00010000

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_REFUSE = _ERRNO | errno.EPERM
_UNKNOWN = _ERRNO | errno.ENOSYS
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
STREAM, DATAGRAM, ANY_TYPE = 1, 2, 0
_TYPE_BITS = 0xF

_SET_FILTER, _ACTION_AVAILABLE, _ALL_THREADS = 1, 2, 1
_NO_NEW_PRIVS = 38

NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "execve": (59, 221),
    "execveat": (322, 281),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fork": (57, None),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "lookup_dcookie": (212, 18),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "settimeofday": (164, 170),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "socket": (41, 198),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vfork": (58, None),
    "vhangup": (153, 58),
}
"""The number of each call that a filter names, on x86_64 and on aarch64."""

KERNEL = (
    *(
        "acct",
        "add_key",
        "adjtimex",
        "bpf",
        "chroot",
        "clock_adjtime",
        "clock_settime",
        "delete_module",
    ),
    *("fanotify_init", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "init_module"),
    *("io_uring_enter", "io_uring_register", "io_uring_setup", "ioperm", "iopl", "kcmp"),
    *("kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "migrate_pages", "modify_ldt"),
    *("mount", "mount_setattr", "move_mount", "move_pages", "name_to_handle_at", "nfsservctl"),
    *(
        "open_by_handle_at",
        "open_tree",
        "perf_event_open",
        "personality",
        "pidfd_getfd",
        "pivot_root",
    ),
    *("process_madvise", "process_mrelease", "process_vm_readv", "process_vm_writev", "ptrace"),
    *("quotactl", "quotactl_fd", "reboot", "request_key", "setdomainname", "sethostname", "setns"),
    *(
        "settimeofday",
        "swapoff",
        "swapon",
        "syslog",
        "umount2",
        "unshare",
        "userfaultfd",
        "vhangup",
    ),
)
"""What no process of a graph server needs: memory of others, mounts, namespaces, the kernel."""

OTHERS = (
    *("ioprio_set", "mq_open", "mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd", "pidfd_open"),
    *(
        "pidfd_send_signal",
        "rt_sigqueueinfo",
        "rt_tgsigqueueinfo",
        "sched_setattr",
        "sched_setparam",
    ),
    *("sched_setscheduler", "semctl", "semget", "semop", "semtimedop", "setpriority", "shmat"),
    *("shmctl", "shmget", "tkill"),
)
"""What reaches other processes, or shared memory that other processes have left."""

_Instruction = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Socket:
    """Sockets of one family that may be made; of one type only, unless it is `ANY_TYPE`."""

    family: int
    type: int = ANY_TYPE


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """System calls that a process keeps: `programs` to start other processes, `processes` to signal
    and limit them; sockets of the listed kinds and no others."""

    sockets: Sequence[Socket]
    programs: bool = False
    processes: bool = False

    def program(self, own_pid: int) -> bytes:
        """The BPF program; signals go to `own_pid` only, unless `processes`."""
        index = list(_ARCHITECTURES).index(machine())
        code = [*_only_this_architecture(machine())]
        for name in (*KERNEL, *(() if self.processes else OTHERS)):
            code += _rule(NUMBERS[name][index], [_returning(_REFUSE)])
        code += _rule(NUMBERS["socket"][index], _sockets(self.sockets))
        code += self._rules_for_programs(index)
        if not self.processes:
            for name in ("kill", "tgkill"):
                code += _rule(NUMBERS[name][index], _argument_is_one_of(0, (own_pid,)))
            code += _rule(NUMBERS["prlimit64"][index], _argument_is_one_of(0, (0, own_pid)))
            code += _rule(NUMBERS["sched_setaffinity"][index], _argument_is_one_of(0, (0,)))
        code.append(_returning(_ALLOW))
        return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)

    def _rules_for_programs(self, index: int) -> list[_Instruction]:
        # The flags of clone3 are behind a pointer; without that call, libraries use clone.
        code = _rule(NUMBERS["clone3"][index], [_returning(_UNKNOWN)])
        flags = [(_LOAD, 0, 0, _ARGUMENTS), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), _returning(_REFUSE)]
        if self.programs:
            return code + _rule(NUMBERS["clone"][index], [*flags, _returning(_ALLOW)])
        for name in ("execve", "execveat", "fork", "vfork"):
            code += _rule(NUMBERS[name][index], [_returning(_REFUSE)])
        thread = [(_ANY_BIT, 1, 0, _CLONE_THREAD), _returning(_REFUSE), _returning(_ALLOW)]
        return code + _rule(NUMBERS["clone"][index], [*flags, *thread])


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


_libc = ctypes.CDLL(None, use_errno=True)


def machine() -> str:
    return platform.machine()


def is_available() -> bool:
    """Whether this kernel takes filters, and we know the numbers of this machine's calls."""
    if machine() not in _ARCHITECTURES:
        return False
    action = ctypes.c_uint32(_KILL)
    return _call(_ACTION_AVAILABLE, 0, ctypes.byref(action)) == 0


def install(program: bytes) -> None:
    """Filter every thread of this process, and whatever it starts."""
    code = ctypes.create_string_buffer(program, len(program))
    filtering = _Program(len(program) // 8, ctypes.cast(code, ctypes.c_void_p))
    if _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or _call(
        _SET_FILTER, _ALL_THREADS, ctypes.byref(filtering)
    ):
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")


def _call(operation: int, flags: int, argument: object) -> int:
    number = ctypes.c_long(_SECCOMP[machine()])
    result: int = _libc.syscall(number, ctypes.c_uint(operation), ctypes.c_uint(flags), argument)
    return result


def _only_this_architecture(name: str) -> list[_Instruction]:
    check = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _ARCHITECTURES[name]),
        _returning(_KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    return [*check, (_AT_LEAST, 0, 1, _X32), _returning(_KILL)]


def _rule(number: int | None, then: Sequence[_Instruction]) -> list[_Instruction]:
    """What becomes of one call; the instructions end with a return on every path."""
    return [] if number is None else [(_EQUAL, 0, len(then), number), *then]


def _argument_is_one_of(position: int, values: Iterable[int]) -> list[_Instruction]:
    """Numbers of processes are 32 bits wide; the kernel ignores the upper half as we do."""
    code: list[_Instruction] = [(_LOAD, 0, 0, _ARGUMENTS + 8 * position)]
    for value in values:
        code += [(_EQUAL, 0, 1, value), _returning(_ALLOW)]
    return [*code, _returning(_REFUSE)]


def _sockets(allowed: Iterable[Socket]) -> list[_Instruction]:
    code: list[_Instruction] = []
    for socket in allowed:
        code.append((_LOAD, 0, 0, _ARGUMENTS))
        if socket.type == ANY_TYPE:
            code += [(_EQUAL, 0, 1, socket.family), _returning(_ALLOW)]
        else:
            code += [
                (_EQUAL, 0, 4, socket.family),
                (_LOAD, 0, 0, _ARGUMENTS + 8),
                (_AND, 0, 0, _TYPE_BITS),
                (_EQUAL, 0, 1, socket.type),
                _returning(_ALLOW),
            ]
    return [*code, _returning(_REFUSE)]


def _returning(action: int) -> _Instruction:
    return (_RETURN, 0, 0, action)
