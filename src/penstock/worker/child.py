"""Program of a child process: reads a function and its arguments, runs it, writes the result.

It is run by its path, so it imports only what the function needs. The kernel kills it when its
parent dies. Standard output of the function goes to the worker's log, never between the pickles.
"""

import contextlib
import ctypes
import os
import pickle
import signal
import sys
import traceback

_PR_SET_PDEATHSIG = 1


def main(parent: str) -> None:
    _die_with(int(parent))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path[:] = pickle.load(sys.stdin.buffer)  # noqa: S301 - our parent wrote it
    try:
        prepare, work, args = pickle.load(sys.stdin.buffer)  # noqa: S301
        if prepare is not None:
            prepare()
        answer = pickle.dumps((True, work(*args)))
    except BaseException as e:  # it is raised again in the parent
        answer = _pickled(e)
    with contextlib.suppress(BrokenPipeError), answers:
        answers.write(answer)


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _pickled(error: BaseException) -> bytes:
    error.add_note(traceback.format_exc())
    try:
        answer = pickle.dumps((False, error))
        pickle.loads(answer)  # noqa: S301 - an exception may be pickled and yet not be rebuilt
    except Exception:
        answer = pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    return answer


if __name__ == "__main__":
    main(sys.argv[1])
