"""Scheduler and kubelet of a cluster of one node, for the API server of the tests: its pods are
child processes.

A pod has an address of its own (127.77.x.y, all of which are this machine), its volumes are
folders, and paths below a mount in its environment lead there. Hooks run, deletion
takes its grace, an exit becomes a status; and the node can be full, lost, or evict.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import signal
from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from tests.servers.process import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.servers.kubernetes_api import KubernetesServer, Object

NODE = "node-1"


class Kubelet:
    """`async with Kubelet(server, folder) as kubelet:`"""

    def __init__(self, server: KubernetesServer, folder: Path) -> None:
        self.full: str | None = None
        """What the scheduler says while no node has room."""
        self.images = {"penstock:test"}
        self.never_pulls = False
        self.lost = False
        self.started: list[str] = []
        self.kept_logs: dict[str, str] = {}
        """The last log of each name whose process has ended."""
        self._server = server
        self._folder = folder
        self._pods: dict[str, _PodRunner] = {}
        self._numbers = iter(range(1, 60_000))
        server.on_pod = self._on_pod
        server.log_of = self._log_of

    async def __aenter__(self) -> Kubelet:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(runner.close() for runner in self._pods.values()))

    @property
    def processes(self) -> dict[str, int]:
        """The pid of each pod's process that lives."""
        return {
            runner.name: runner.process.pid
            for runner in self._pods.values()
            if runner.process is not None and runner.process.returncode is None
        }

    def ip(self) -> str:
        number = next(self._numbers)
        return f"127.77.{number // 250}.{number % 250 + 1}"

    def kill(self, name: str, *, oom: bool = False) -> None:
        runner = self._of(name)
        runner.oom = oom
        assert runner.process is not None
        runner.process.kill()

    def evict(self, name: str, message: str) -> None:
        runner = self._of(name)
        runner.ending = {"phase": "Failed", "reason": "Evicted", "message": message}
        assert runner.process is not None
        runner.process.kill()

    def lose_node(self) -> None:
        """Nobody is there to say how pods end; the control plane of the cluster deletes them."""
        self.lost = True
        for name in list(self._server.all("pods")):
            self._server.edit("pods", name, _taint)
            with suppress(Exception):
                self._server._delete("pods", "graphs", name, {"gracePeriodSeconds": 0.5})

    def _of(self, name: str) -> _PodRunner:
        uid = self._server.pod(name)["metadata"]["uid"]
        return self._pods[uid]

    def _log_of(self, name: str) -> bytes | None:
        file = self._folder / self._server.pod(name)["metadata"]["uid"] / "log"
        return file.read_bytes() if file.exists() else None

    def _on_pod(self, before: Object | None, current: Object | None) -> None:
        if current is None:
            assert before is not None
            if (runner := self._pods.get(before["metadata"]["uid"])) is not None:
                runner.abandon()
            return
        uid = current["metadata"]["uid"]
        if before is None:
            self._pods[uid] = _PodRunner(self, self._server, self._folder / uid, current)
        elif "deletionTimestamp" in current["metadata"] and uid in self._pods:
            self._pods[uid].end(current["metadata"]["deletionGracePeriodSeconds"])


def _taint(pod: Object) -> None:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
    }
    pod["status"].setdefault("conditions", []).append(condition)


class _PodRunner:
    def __init__(
        self, kubelet: Kubelet, server: KubernetesServer, folder: Path, pod: Object
    ) -> None:
        self.name: str = pod["metadata"]["name"]
        self._uid: str = pod["metadata"]["uid"]
        self.process: asyncio.subprocess.Process | None = None
        self.oom = False
        self.ending: dict[str, Any] | None = None
        self._kubelet = kubelet
        self._server = server
        self._folder = folder
        self._spec = pod["spec"]
        self._container = pod["spec"]["containers"][0]
        self._ip = ""
        self._grace: float | None = None
        self._ending = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self.kill()
        if self.process is not None:
            await self.process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def abandon(self) -> None:
        """The pod is no more, whatever became of its process."""
        if self.process is None:
            self._task.cancel()
        self.kill()
        self.end(0.0)

    def end(self, grace: float) -> None:
        self._grace = grace if self._grace is None else min(grace, self._grace)
        self._ending.set()

    async def _run(self) -> None:
        await self._scheduled()
        starting = asyncio.create_task(self._started())
        ending = asyncio.create_task(self._ending.wait())
        await asyncio.wait({starting, ending}, return_when="FIRST_COMPLETED")
        if not starting.done():
            starting.cancel()
            self._remove()
            return
        ending.cancel()
        await self._supervised()

    async def _scheduled(self) -> None:
        while self._kubelet.full is not None:
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": self._kubelet.full,
            }
            self._edit_status(conditions=[condition])
            await asyncio.sleep(0.02)

        def bind(pod: Object) -> None:
            pod["spec"]["nodeName"] = NODE
            pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "True"}]

        self._edit(bind)

    async def _started(self) -> None:
        """The image, the secret, the folders, the process."""
        while self._container["image"] not in self._kubelet.images:
            reason = "ErrImageNeverPull" if self._kubelet.never_pulls else "ImagePullBackOff"
            waiting = {"reason": reason, "message": f'no such image "{self._container["image"]}"'}
            state = {"name": self._container["name"], "state": {"waiting": waiting}}
            self._edit_status(containerStatuses=[state])
            await asyncio.sleep(0.02)
        while not self._mount():  # noqa: ASYNC110 - the real one looks again and again too
            await asyncio.sleep(0.02)
        self._ip = self._kubelet.ip()
        with (self._folder / "log").open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                *die_with_parent(self._container["command"]),
                env=self._environment(),
                cwd=self._folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._kubelet.started.append(self.name)

        def running(pod: Object) -> None:
            pod["status"] |= {"phase": "Running", "podIP": self._ip}
            pod["status"]["containerStatuses"] = [
                {"name": self._container["name"], "state": {"running": {}}}
            ]

        self._edit(running)

    async def _supervised(self) -> None:
        assert self.process is not None
        exited = asyncio.create_task(self.process.wait())
        ending = asyncio.create_task(self._ending.wait())
        await asyncio.wait({exited, ending}, return_when="FIRST_COMPLETED")
        if not exited.done():
            await self._terminate(exited)
        ending.cancel()
        code = await exited
        self._kubelet.kept_logs[self.name] = (self._folder / "log").read_text(errors="replace")
        if self._kubelet.lost:
            return
        self.kill()
        self._report(code)
        if not self._ending.is_set():
            await self._ending.wait()
        self._remove()

    async def _terminate(self, exited: asyncio.Task[int]) -> None:
        assert self.process is not None
        assert self._grace is not None
        deadline = asyncio.get_running_loop().time() + self._grace
        hook = (self._container.get("lifecycle") or {}).get("preStop")
        if hook is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._exec(hook["exec"]["command"]), self._grace)
        with suppress(ProcessLookupError):
            self.process.terminate()
        left = max(0.0, deadline - asyncio.get_running_loop().time())
        await asyncio.wait({exited}, timeout=left)
        self.kill()

    async def _exec(self, command: list[str]) -> None:
        with (self._folder / "hook.log").open("ab") as log:
            hook = await asyncio.create_subprocess_exec(
                *die_with_parent(command),
                env=self._environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            await hook.wait()
        finally:
            with suppress(ProcessLookupError):
                hook.kill()

    def _report(self, code: int) -> None:
        exit_code = 128 - code if code < 0 else code
        reason = "OOMKilled" if self.oom else "Completed" if code == 0 else "Error"

        def over(pod: Object) -> None:
            pod["status"]["phase"] = "Succeeded" if code == 0 else "Failed"
            terminated = {"exitCode": exit_code, "reason": reason}
            pod["status"]["containerStatuses"] = [
                {"name": self._container["name"], "state": {"terminated": terminated}}
            ]
            pod["status"] |= self.ending or {}

        self._edit(over)

    def _mount(self) -> bool:
        """Whether all volumes are there: a secret may have to be waited for."""
        for volume in self._spec.get("volumes", ()):
            folder = self._folder / "volumes" / volume["name"]
            folder.mkdir(parents=True, exist_ok=True)
            if "secret" in volume:
                secret = self._server.all("secrets").get(volume["secret"]["secretName"])
                if secret is None:
                    return False
                plain = {k: v.encode() for k, v in secret.get("stringData", {}).items()}
                coded = {k: base64.b64decode(v) for k, v in secret.get("data", {}).items()}
                for name, value in (plain | coded).items():
                    (folder / name).write_bytes(value)
            for source in volume.get("projected", {}).get("sources", ()):
                token = self._server.token_for(self._spec, self.name, source["serviceAccountToken"])
                (folder / source["serviceAccountToken"]["path"]).write_text(token)
        return True

    def _environment(self) -> dict[str, str]:
        values = {"PATH": os.environ["PATH"]}
        for entry in self._container.get("env", ()):
            source = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            assert source in (None, "status.podIP")
            values[entry["name"]] = self._ip if source else self._here(entry["value"])
        return values

    def _here(self, text: str) -> str:
        """A path of the pod as one of this machine."""
        for mount in self._container.get("volumeMounts", ()):
            path = mount["mountPath"]
            if text == path or text.startswith(f"{path}/"):
                return str(self._folder / "volumes" / mount["name"]) + text.removeprefix(path)
        return text

    def _edit(self, change: Callable[[Object], None]) -> None:
        """A change of this pod, and never of another that has its name now."""
        current = self._server.all("pods").get(self.name)
        if current is None or current["metadata"]["uid"] != self._uid:
            return
        fresh = deepcopy(current)
        change(fresh)
        if fresh != current:
            self._server.edit("pods", self.name, change)

    def _remove(self) -> None:
        current = self._server.all("pods").get(self.name)
        if current is not None and current["metadata"]["uid"] == self._uid:
            self._server.remove("pods", self.name)

    def _edit_status(self, **fields: Any) -> None:
        self._edit(lambda pod: pod["status"].update(fields))
