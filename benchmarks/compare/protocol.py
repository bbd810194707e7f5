"""The protocol between compare.py and its contestants. A contestant is a process that answers each
line on its stdin by one on its stdout: "ok" followed by numbers, or "error" and the reason. A new
prepare discards the previous work:

    prepare WORK/KIND/SIZE[/LENGTH] check|time WEIGHTS     builds what the row names, without dropout for check; WEIGHTS: a safetensors
                                                           file, or -
    forget                                                 discards the prepared work
    save FILE                                              writes the weights
    check N                                                losses of N training steps, or a digest of a result
    run N                                                  processor seconds of all N steps, then wall-clock seconds of each
    profile FILE                                           writes where a step's time goes, in the contestant's own words; ours: all
                                                           calls as comma-separated values if the file's name ends in .csv
    floor                                                  ours: the least seconds a step could take, its operations and bytes, and the
                                                           machine's peaks of both a second

WORK may include how a GPU multiplies floats, as in cnn@tf32. On a GPU a step ends when the device
has finished it.
"""

import gc
import os
import select
import signal
import subprocess
import sys
import time


class Failure(Exception):
    """A contestant could not answer; the message is one line."""


def parse_row(text):
    work, kind, size, *length = text.split("/")
    return work, kind, int(size), int(length[0]) if length else 0


class Contestant:
    """The process on the other side, started by the first request and restarted after one that
    failed."""

    def __init__(self, command, environment=None, log=None, processors=None):
        self.command, self.environment, self.log, self.processors = command, environment, log, processors
        self.process, self.buffer, self.started = None, b"", 0.0

    def start(self):
        self.close()
        self.buffer, self.started = b"", time.perf_counter()
        processors = self.processors
        with open(self.log or os.devnull, "ab") as errors:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=self.environment,
                start_new_session=True, preexec_fn=(lambda: os.sched_setaffinity(0, processors)) if processors else None)

    def ask(self, request, seconds):
        """Returns the answer's numbers. Throws Failure for an error, an exit and a timeout; the
        latter two end the process."""
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(request.encode() + b"\n")
            self.process.stdin.flush()
            line = self.line(time.monotonic() + seconds)
        except OSError:
            line = None
        if line is None:
            why = "no answer in %.0f s" % seconds if self.process.poll() is None else f"ended, {self.last_words()}"
            self.close()
            raise Failure(f"{request.split()[0]}: {why}")
        word, _, rest = line.partition(" ")
        if word == "error":
            raise Failure(rest.strip() or "error")
        try:
            if word != "ok":
                raise ValueError
            return [float(number) for number in rest.split()]
        except ValueError:
            self.close()
            raise Failure(f"{request.split()[0]}: not an answer: {line[:200]}") from None

    def age(self):
        """Seconds since the process was started."""
        return time.perf_counter() - self.started

    def line(self, end):
        """Returns the next line, or None when the process has ended or the time is over."""
        out = self.process.stdout.fileno()
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                return None
            read = os.read(out, 1 << 16)
            if not read:
                self.process.wait()
                return None
            self.buffer += read
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode(errors="replace")

    def last_words(self):
        """Describes how it ended, with the last line it wrote to stderr."""
        code = self.process.returncode
        ending = f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"
        try:
            with open(self.log, "rb") as log:
                lines = log.read()[-4000:].decode(errors="replace").split("\n")
            messages = [line.strip() for line in lines if line.strip()]
        except (OSError, TypeError):
            messages = []
        return f"{ending}: {messages[-1][:200]}" if messages else ending

    def peak_memory(self, reset=False):
        """Returns the process's memory high-water mark in bytes, or None. `reset` restarts the
        measurement."""
        if self.process is None or self.process.poll() is not None:
            return None
        try:
            if reset:
                with open(f"/proc/{self.process.pid}/clear_refs", "w") as file:
                    file.write("5")
            with open(f"/proc/{self.process.pid}/status") as file:
                for line in file:
                    if line.startswith("VmHWM:"):
                        return int(line.split()[1]) * 1024
        except OSError:
            pass
        return None

    def close(self):
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # its own group: compilers that it started end, too
        except OSError:
            pass
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None


class Prepared:
    """The work that a Python contestant has prepared: `step` is timed, `numbers(count)` compared,
    `operations` counts those of a step; `profile()` returns text."""

    def __init__(self, step, numbers, operations=1, profile=None):
        self.step, self.numbers, self.operations, self.profile = step, numbers, operations, profile


def answer(request, prepare, now, forgotten):
    """Answers one request; `now` holds the prepared work, and `forgotten` is called when it is
    discarded."""
    words = request.split()
    if words[0] == "prepare" and len(words) == 4:
        now.clear()
        now.append(prepare(parse_row(words[1]), words[2] == "check", None if words[3] == "-" else words[3]))
        return []
    if words[0] == "forget":
        now.clear()
        gc.collect()
        forgotten()
        return []
    if not now:
        raise Failure("nothing is prepared")
    if words[0] == "profile" and now[0].profile:
        with open(words[1], "w", encoding="utf-8") as file:
            file.write(now[0].profile())
        return []
    if words[0] == "check":
        return now[0].numbers(int(words[1]))
    if words[0] == "run":
        step, seconds = now[0].step, []
        used = time.process_time()
        for _ in range(int(words[1])):
            start = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - start)
        return [number / now[0].operations for number in (time.process_time() - used, *seconds)]
    raise Failure(f"no request '{words[0]}'")


def serve(prepare, forgotten=lambda: None):
    """The main loop of a Python contestant. Output of libraries on stdout goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    now = []
    for request in sys.stdin:
        try:
            print("ok", *(f"{float(number):.10g}" for number in answer(request, prepare, now, forgotten)), file=answers, flush=True)
        except Exception as e:  # every request is answered, and the next one may succeed
            kind = "" if isinstance(e, Failure) else f"{type(e).__name__}: "
            print("error", f"{kind}{e}".replace("\n", " ")[:400], file=answers, flush=True)
