"""Tries changes with the test programs of a whole suite: `tools/mutate.py --suite`. Each test case has run by itself first and
said which changes it evaluates (CHOOSER in mutants.py), so a change is tried with these cases alone, the quickest first."""

import concurrent.futures
import json
import os
import re
import resource
import subprocess
import tempfile
import time

MEMORY = 8 << 30  # a changed pass may repeat for ever what takes memory


def run(program, cases, seconds, **environment):
    """The output of some test cases, to the first that fails, and whether all passed in so many seconds of the processor."""
    names = [re.sub(r"[\\,\[\]]", "?", case) for case in cases]  # a comma would part names
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TAPEGRAPH_MUTANT": "0", **environment}
    command = ["sh", "-c", 'ulimit -t "$0"; exec "$@"', str(int(seconds)), program, "--abort-after=1", "-nc", "-tc=" + ",".join(names)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600 + 10 * seconds, env=environment,
                              text=True, errors="replace")
    except subprocess.TimeoutExpired:
        return "", False
    return done.stdout, done.returncode == 0


def coverage_of(program, case):
    """How long a test case takes and the changes that it evaluates; nothing if it fails as it is."""
    with tempfile.NamedTemporaryFile(prefix="reached") as file:
        begin = time.monotonic()
        text, passed = run(program, [case], 600, TAPEGRAPH_REACHED=file.name)
        seconds = time.monotonic() - begin
        if not passed:
            print(f"{os.path.basename(program)}: '{case}' fails as it is and is left out\n{text[-1000:]}", flush=True)
            return None
        return seconds, sorted({int(number) for number in file.read().split()})


def programs_in(build):
    for folder in ("tests", "tests/fuzz"):
        for name in sorted(os.listdir(os.path.join(build, folder))):
            path = os.path.join(build, folder, name)
            if name.startswith("test_") and os.path.isfile(path) and os.access(path, os.X_OK):
                yield path


def coverage(build, workers):
    """Of each program's test cases what coverage_of says; kept beside the programs until they are built again."""
    kept_in, kept, result = os.path.join(build, "reached.json"), {}, {}
    if os.path.exists(kept_in):
        with open(kept_in) as file:
            kept = json.load(file)
    for program in programs_in(build):
        built = os.path.getmtime(program)
        if program not in kept or kept[program]["built"] != built:
            listed = subprocess.run([program, "-ltc", "-nc"], stdout=subprocess.PIPE, text=True).stdout.split("\n")
            cases = sorted({line for line in listed if line and not line.startswith(("[doctest]", "===="))})
            found = workers.map(lambda case: coverage_of(program, case), cases)
            kept[program] = {"built": built, "cases": {case: each for case, each in zip(cases, found) if each}}
            with open(kept_in, "w") as out:
                json.dump(kept, out)
        result[program] = kept[program]["cases"]
        print(f"{os.path.basename(program)}: {len(result[program])} test cases, "
              f"{sum(seconds for seconds, _ in result[program].values()):.0f} s one by one", flush=True)
    return result


def noticed_by(number, reaching):
    """The test case that notices a change, of (seconds, program, case) from the quickest on; None if none does."""
    begin, size = 0, 1
    while begin < len(reaching):  # one, then four, then sixteen: most are noticed by the first
        for program in dict.fromkeys(program for _, program, _ in reaching[begin:begin + size]):
            some = [(seconds, case) for seconds, of, case in reaching[begin:begin + size] if of == program]
            text, passed = run(program, [case for _, case in some], 5 + 4 * sum(seconds for seconds, _ in some),
                               TAPEGRAPH_MUTANT=str(number))
            if not passed:
                case = re.search(r"^TEST CASE:\s+(.*)", text, re.M)
                return f"{os.path.basename(program)}: {case.group(1) if case else 'stopped'}"
        begin, size = begin + size, min(4 * size, 256)
    return None


def try_suite(build, options, sampled):
    """Tries a sample of the changes of a tree that --tree has written with the test programs built in it."""
    with open(os.path.join(build, "..", "..", "changes.json")) as file:
        known = [(n, label) for n, label in enumerate(json.load(file), 1) if re.search(options.only, label)]
    counts = {"noticed": 0, "survived": 0, "not reached": 0}
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # the programs inherit it
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        reaching = {number: [] for number, _ in known}
        for program, cases in coverage(build, workers).items():
            for case, (seconds, numbers) in cases.items():
                for number in numbers:
                    if number in reaching:
                        reaching[number].append((seconds, program, case))
        chosen = sampled(known, options)
        found = workers.map(lambda each: noticed_by(each[0], sorted(reaching[each[0]])), chosen)
        for (number, label), by in zip(chosen, found):
            verdict = "noticed" if by else "survived" if reaching[number] else "not reached"
            counts[verdict] += 1
            tried = f" by {by}" if by else f" {len(reaching[number])} test cases" if reaching[number] else ""
            print(f"{number} {verdict}{tried} | {label}", flush=True)
    print("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + f", of {len(known)}")
    return 0
