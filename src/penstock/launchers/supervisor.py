"""Supervises one graph server: enforces its limits, writes its log, and records how it ended.

    python -I -S supervisor.py FOLDER COMMAND… < SECRETS

Started by the subprocess launcher in an isolated interpreter, by its path, so it imports nothing
else of Penstock. It detaches from its parent at once, so a control plane may be restarted while the
server keeps running; without a control plane for an hour, the server is ended. Its standard input
is passed on to the server: secrets never go into the environment, which other processes of the
account can read. The server dies with its supervisor. The lock in the folder decides who runs:
there is one supervisor per folder, and a folder is used once. Address-space limits cannot be used
(an embedded graph database reserves terabytes that it never touches), so the resident memory of the
server and its children is measured a few times per second.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

PROCESS, EXIT, LIMITS, LOCK, LOG = "process.json", "exit.json", "limits.json", "lock", "server.log"
ATTENDED = "attended"
TICK = 0.2
LOG_BYTES = 4 * 1024 * 1024
SECRET_BYTES = 60_000
"""Less than the buffer of a pipe, so writing never blocks."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_PAGE = os.sysconf("SC_PAGE_SIZE")


def start_time(pid: int) -> int | None:
    """Start time of a process in ticks since boot; None if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    family_pids, queue = [], [pid]
    while queue:
        process = queue.pop()
        family_pids.append(process)
        try:
            for task in Path(f"/proc/{process}/task").iterdir():
                queue += map(int, (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return family_pids


def memory_of(pids: list[int]) -> int:
    """Private memory of the processes; a page shared after a fork counts for both."""
    return sum(map(_private, pids))


def exact_memory_of(pids: list[int]) -> int:
    """Like `memory_of`, with shared pages counted once; slow, as the kernel walks all pages."""
    return sum(map(_share, pids))


def _private(pid: int) -> int:
    try:
        resident, shared = Path(f"/proc/{pid}/statm").read_bytes().split()[1:3]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (int(resident) - int(shared)) * _PAGE


def _share(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return _private(pid)
    return next(
        (int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss_Anon:")),
        _private(pid),
    )


def write(file: Path, value: object) -> None:
    """Write a JSON file atomically."""
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps(value))
    draft.replace(file)


class Log:
    """A log rotated over two files of a few megabytes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._open()

    def add(self, text: bytes) -> None:
        if self._size + len(text) > LOG_BYTES:
            self._out.close()
            self._file.replace(self._file.with_suffix(".log.1"))
            self._open()
        self._out.write(text)
        self._size += len(text)

    def _open(self) -> None:
        self._out = self._file.open("ab", buffering=0)
        self._size = self._out.tell()


class GraphServerSupervisor:
    def __init__(self, folder: Path, command: list[str], secrets: bytes) -> None:
        self._folder = folder
        self._command = command
        self._secrets = secrets
        self._log = Log(folder / LOG)
        self._limits_at = self._attended_at = 0
        self._attended = time.monotonic()
        self._memory = 0
        self._patience = 0.0
        self._child = 0
        self._asked = False
        self._oom = False
        self._oom_kills = _oom_kills()

    def run(self, ready: int) -> None:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._read_limits()
        output = self._spawn()
        for number in (signal.SIGTERM, signal.SIGQUIT):
            signal.signal(number, self._on_stop)
        started = {
            "pid": os.getpid(),
            "start": start_time(os.getpid()),
            "boot": boot_id(),
            "child": self._child,
        }
        write(self._folder / PROCESS, started)
        os.write(ready, b"+")
        os.close(ready)
        self._keep(output)
        status = self._reap()
        self._copy(output)
        code = os.waitstatus_to_exitcode(status)
        killed = code == -signal.SIGKILL and not self._asked and _oom_kills() > self._oom_kills
        write(self._folder / EXIT, {"code": code, "oom": self._oom or killed, "asked": self._asked})

    def _spawn(self) -> int:
        output, theirs = os.pipe()
        reading, writing = os.pipe()
        os.write(writing, self._secrets)
        os.close(writing)
        self._secrets = b""
        self._child = os.fork()
        if not self._child:
            self._become(reading, theirs)
        os.close(reading)
        os.close(theirs)
        os.set_blocking(output, False)
        return output

    def _become(self, secrets: int, output: int) -> None:
        try:
            os.setsid()
            libc = ctypes.CDLL(None)
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            Path("/proc/self/oom_score_adj").write_text("800")
            os.dup2(secrets, 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.execv(self._command[0], self._command)  # noqa: S606 - no shell is wanted
        except BaseException as e:
            os.write(output, f"cannot be started: {e}\n".encode())
        os._exit(127)

    def _on_stop(self, number: int, _frame: object) -> None:
        self._asked = True
        if number == signal.SIGQUIT:
            self._kill()
        else:
            os.kill(self._child, signal.SIGTERM)

    def _keep(self, output: int) -> None:
        poll, end = select.poll(), os.pidfd_open(self._child)
        for descriptor in (output, end):
            poll.register(descriptor, select.POLLIN)
        looked = 0.0
        while end not in (ready := dict(poll.poll(TICK * 1000))):
            if output in ready and not self._copy(output):
                poll.unregister(output)
            if time.monotonic() - looked >= TICK:
                self._look()
                looked = time.monotonic()
        os.close(end)

    def _copy(self, output: int) -> bool:
        """Copy the available output to the log; False at its end."""
        while True:
            try:
                text = os.read(output, 65536)
            except BlockingIOError:
                return True
            if not text:
                return False
            self._log.add(text)

    def _look(self) -> None:
        self._read_limits()
        self._check_attended()
        pids = family(self._child)
        if memory_of(pids) > self._memory and (exact_bytes := exact_memory_of(pids)) > self._memory:
            self._oom = True
            self._log.add(f"killed: {exact_bytes} bytes held, {self._memory} allowed\n".encode())
            self._kill()

    def _read_limits(self) -> None:
        changed = (self._folder / LIMITS).stat().st_mtime_ns
        if changed == self._limits_at:
            return
        self._limits_at = changed
        limits = json.loads((self._folder / LIMITS).read_text())
        self._memory = limits["memory_bytes"]
        self._patience = limits["unattended_seconds"]
        for pid in family(os.getpid()):
            for task in Path(f"/proc/{pid}/task").iterdir():
                with suppress(ProcessLookupError):
                    os.sched_setaffinity(int(task.name), limits["cpus"])

    def _check_attended(self) -> None:
        """End the server if no control plane was seen for long; suspend time does not count."""
        with suppress(FileNotFoundError):
            touched = (self._folder.parents[1] / ATTENDED).stat().st_mtime_ns
            if touched != self._attended_at:
                self._attended_at, self._attended = touched, time.monotonic()
        if time.monotonic() - self._attended > self._patience:
            self._log.add(f"killed: no control plane for {self._patience:g} s\n".encode())
            self._kill()

    def _kill(self) -> None:
        for pid in family(self._child):
            _signal(pid, signal.SIGKILL)

    def _reap(self) -> int:
        """Wait for the server, then kill its orphans, which we inherit as their subreaper."""
        _, status = os.waitpid(self._child, 0)
        while True:
            for pid in family(os.getpid())[1:]:
                _signal(pid, signal.SIGKILL)
            try:
                os.wait()
            except ChildProcessError:
                return status


def _signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _oom_kills() -> int:
    lines = (line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return next((int(value) for name, value in lines if name == "oom_kill"), 0)


def main(folder: Path, command: list[str]) -> None:
    """Writes `+` to standard output if the server was started, now or before; else nothing."""
    # uvloop leaves a duplicate of its pipe end open.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    secrets = sys.stdin.buffer.read()
    ready, theirs = os.pipe()
    if os.fork():
        os.close(theirs)
        os.write(1, os.read(ready, 1))
        return
    os.close(ready)
    os.setsid()
    os.umask(0o077)
    os.chdir(folder)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.write(theirs, b"+")
        return
    if (folder / PROCESS).exists():
        os.write(theirs, b"+")
        return
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    os.dup2(os.open(folder / "warden.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    GraphServerSupervisor(folder, command, secrets).run(theirs)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
