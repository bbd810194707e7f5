#!/usr/bin/env python3
"""Checks the exchanges between blocks under PTX's memory model.

Tries every execution of small programs that do what the kernels do.

usage: ptx_litmus.py [--source cuda/tapegraph/cuda/kernels/synchronization.cuh] [--verbose]

The ordering of each function of synchronization.cuh is read from its PTX. Then, for the exchange
through a counter of the grid and the one between blocks of a cluster, no execution may end with a
stale value, or with one that is not there yet. With any one part of the exchange weakened (its
order, its scope, a barrier) some execution must do so, or the test could not detect it. Programs of
the literature whose outcomes are known come first, which verifies that the model is PTX's.
"""

import argparse
import pathlib
import re
import sys

from ptx_model import Program, add, barrier, fence, read, syncthreads, write

ONE, TWO, THREE, FOUR = ("c", 0), ("c", 1), ("c", 2), ("c", 3)  # blocks of a cluster


def literature():
    """Programs, an outcome, and whether PTX allows it."""
    passing = lambda send, receive, there=TWO: [
        (ONE, write("x", 1), write("y", 1, *send)),
        (there, read("y", *receive, needs=1), read("x", name="x"))]
    old = (("x", 0),)
    both_old = (("x", 0), ("y", 0))
    buffering = lambda *between: [(ONE, write("x", 1, "relaxed"), *between, read("y", "relaxed", name="y")),
                                  (TWO, write("y", 1, "relaxed"), *between, read("x", "relaxed", name="x"))]
    chain = lambda order: [
        (ONE, write("x", 1), write("y", 1, "release")),
        (TWO, read("y", "acquire", needs=1), write("z", 1, order)),
        (THREE, read("z", "acquire", needs=1), read("x", name="x"))]
    independent = lambda order: [
        (ONE, write("x", 1, "release")), (TWO, write("y", 1, "release")),
        (THREE, read("x", order, name="a"), read("y", order, name="b")),
        (FOUR, read("y", order, name="c"), read("x", order, name="d"))]
    apart = (("a", 1), ("b", 0), ("c", 1), ("d", 0))
    return [
        ("MP, weak", passing(["weak"], ["weak"]), old, True),
        ("MP, relaxed", passing(["relaxed"], ["relaxed"]), old, True),
        ("MP, release and acquire", passing(["release"], ["acquire"]), old, False),
        ("MP, release alone", passing(["release"], ["relaxed"]), old, True),
        ("MP, acquire alone", passing(["relaxed"], ["acquire"]), old, True),
        ("MP, scope of a block between blocks", passing(["release", "cta"], ["acquire", "cta"]), old, True),
        ("MP, scope of a block within one", passing(["release", "cta"], ["acquire", "cta"], ONE), old, False),
        ("MP, one scope too narrow", passing(["release", "gpu"], ["acquire", "cta"]), old, True),
        ("MP, fences", [(ONE, write("x", 1), fence("acq_rel"), write("y", 1, "relaxed")),
                        (TWO, read("y", "relaxed", needs=1), fence("acq_rel"), read("x", name="x"))], old, False),
        ("MP, fences around weak accesses", [(ONE, write("x", 1), fence("acq_rel"), write("y", 1)),
                                             (TWO, read("y", needs=1), fence("acq_rel"), read("x", name="x"))], old, True),
        ("MP through a count of two", [(ONE, write("x", 1), add("y", "release")), (THREE, add("y", "relaxed")),
                                       (TWO, read("y", "acquire", needs=2), read("x", name="x"))], old, False),
        ("SB, relaxed", buffering(), both_old, True),
        ("SB, fences of acquire and release", buffering(fence("acq_rel")), both_old, True),
        ("SB, fences of one order", buffering(fence("sc")), both_old, False),
        ("LB, relaxed", [(ONE, read("x", "relaxed", name="x"), write("y", 1, "relaxed")),
                         (TWO, read("y", "relaxed", name="y"), write("x", 1, "relaxed"))], (("x", 1), ("y", 1)), True),
        ("ISA2", chain("release"), old, False),
        ("ISA2, one relaxed", chain("relaxed"), old, True),
        ("IRIW, acquire", independent("acquire"), apart, True),
        ("CoRR, relaxed", [(ONE, write("x", 1, "relaxed")),
                           (TWO, read("x", "relaxed", name="a"), read("x", "relaxed", name="b"))],
         (("a", 1), ("b", 0)), False),
        ("CoRR, weak", [(ONE, write("x", 1)), (TWO, read("x", name="a"), read("x", name="b"))], (("a", 1), ("b", 0)), True),
        ("two atomic additions", [(ONE, add("x", "relaxed")), (TWO, add("x", "relaxed")),
                                  (THREE, read("x", "relaxed", name="x"))], (("x", 3),), False),
        ("bar.sync", [(ONE, write("x", 1), syncthreads("b")), (ONE, syncthreads("b"), read("x", name="x"))], old, False),
    ]


def orders_of(source):
    """Returns, for each function, the ordering in its PTX: (order, scope)."""
    found = {}
    for name, pattern in {
            "add_to_count": r"red\.(\w+)\.(\w+)\.global\.add",
            "wait_for_count": r"ld\.(\w+)\.(\w+)\.global",
            "wait_for_arrivals": r"mbarrier\.try_wait\.parity\.(\w+)\.(\w+)\.",
            "arrive_at_cluster": r"barrier\.cluster\.arrive\.(\w+)",
            "wait_for_cluster": r"barrier\.cluster\.wait\.(\w+)"}.items():
        body = re.search(rf"\b{name}\([^)]*\) {{(.*?)\n}}", source, re.S)
        match = body and re.search(pattern, body.group(1))
        if not match:
            sys.exit(f"ptx_litmus: {name} has no such instruction: {pattern}")
        found[name] = match.groups() if len(match.groups()) == 2 else (match.group(1), "cluster")
    return found


def exchanges(of):
    """Returns (name, program, outcome that must not be) for the kernels' exchanges. `of` has orders
    and scopes by function; barriers named in of["without"] are left out."""
    bar = lambda name: [] if name in of["without"] else syncthreads(name)
    count = lambda: add("count", *of["add_to_count"])
    awaited = lambda n: read("count", *of["wait_for_count"], needs=n)
    cluster = lambda name: [] if name in of["without"] else barrier(
        name, "cluster", of["arrive_at_cluster"][0], of["wait_for_cluster"][0])
    arrived = lambda n=1: read("arrived", *of["wait_for_arrivals"], needs=n)
    # A value that is sent: no thread writes it or counts its bytes, and both happen in the scope of
    # the cluster (PTX: st.async).
    sent = lambda value="x": [write(value, 1), add("arrived", "release", "cluster")]
    old, early = (("x", 0),), (("x", 2),)
    return [
        ("grid: what one block wrote", [
            (("c", 0), write("x", 1), bar("all have written")), (("c", 0), bar("all have written"), count()),
            (("d", 0), awaited(1), bar("all may read")), (("d", 0), bar("all may read"), read("x", name="x"))], old),
        ("grid: what the first of two wrote", [
            (("c", 0), write("x", 1), bar("all have written")), (("c", 0), bar("all have written"), count()),
            (("e", 0), count()),
            (("d", 0), awaited(2), bar("all may read")), (("d", 0), bar("all may read"), read("x", name="x"))], old),
        ("grid: written over when all have read", [
            (("d", 0), read("x", name="x"), bar("all have written")), (("d", 0), bar("all have written"), count()),
            (("c", 0), awaited(1), bar("all may read")), (("c", 0), bar("all may read"), write("x", 2))], early),
        ("cluster: what was sent", [(("c", 9), *sent()), (ONE, arrived(), read("x", name="x"))], old),
        ("cluster: what the first of two sent", [(("c", 8), *sent()), (("c", 9), *sent("y")),
                                                 (ONE, arrived(2), read("x", name="x"))], old),
        ("cluster: the first operand", [(ONE, write("x", 1), cluster("begin")), (TWO, cluster("begin"), read("x", name="x"))],
         old),
    ]


def weakened(of):
    """Returns (which exchange, what is weakened, the resulting orders)."""
    with_other = lambda name, order, scope: {**of, name: (order, scope)}
    without = lambda *names: {**of, "without": names}
    scope_of_count = of["add_to_count"][1]
    return [
        ("grid", "count without release", with_other("add_to_count", "relaxed", scope_of_count)),
        ("grid", "count in the scope of a cluster", with_other("add_to_count", of["add_to_count"][0], "cluster")),
        ("grid", "wait without acquire", with_other("wait_for_count", "relaxed", of["wait_for_count"][1])),
        ("grid", "wait in the scope of a block", with_other("wait_for_count", of["wait_for_count"][0], "cta")),
        ("grid", "no barrier after what is written", without("all have written")),
        ("grid", "no barrier before what is read", without("all may read")),
        ("cluster: what", "wait without acquire", with_other("wait_for_arrivals", "relaxed", "cluster")),
        ("cluster: what", "wait in the scope of a block", with_other("wait_for_arrivals", "acquire", "cta")),
        ("cluster: the first operand", "arrive without release", with_other("arrive_at_cluster", "relaxed", "cluster")),
        ("cluster: the first operand", "wait without acquire", with_other("wait_for_cluster", "relaxed", "cluster")),
        ("cluster: the first operand", "no barrier", without("begin")),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent / "cuda/tapegraph/cuda/kernels/synchronization.cuh")
    parser.add_argument("--verbose", action="store_true", help="print what is as it should be, too")
    options = parser.parse_args()
    wrong = checked = 0

    def check(name, holds, says):
        nonlocal wrong, checked
        checked += 1
        wrong += not holds
        if not holds or options.verbose:
            print(f"{name}: {says}{'' if holds else ', WRONG'}")

    for name, threads, outcome, allowed in literature():
        found = outcome in Program(threads).outcomes()
        check(name, found == allowed, "allowed" if found else "never")
    of = {**orders_of(options.source.read_text()), "without": ()}
    for name, threads, bad in exchanges(of):
        results = Program(threads).outcomes()
        check(name, results and bad not in results, f"sees {sorted(results)}")
    for which, how, orders in weakened(of):
        seen = [name for name, threads, bad in exchanges(orders)
                if name.startswith(which) and bad in Program(threads).outcomes()]
        check(f"{which}, {how}", bool(seen), f"seen by {len(seen)}")
    print(f"{checked} programs, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
