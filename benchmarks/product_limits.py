#!/usr/bin/env python3
"""Says how fast a model could be at all, if everything but its products of matrices were free.

For rows of compare.py, whose options it takes, it measures the row beside the peers (or takes it from --resume FILE), asks ours
for the calls of a step (tg::profile), and then measures each product of these calls alone: ours, PyTorch's (MKL, into memory
that is there already) and JAX's, in the layout of the call, in that with the weights transposed, and packed where weights are
used many times. The sum of the fastest is what the products of a step cost with the fastest products known: operands lie in a
cache, and nothing is added or moved. The fastest peer's time over that sum is the limit: with these products nobody can be
further ahead of that peer.

    benchmarks/product_limits.py --only 'mlp/' --threads 1 --peers pytorch,jax --ways '^(TapeGraph|PyTorch|PyTorch fused|JAX)$'
    benchmarks/product_limits.py --report benchmarks/results/limits_....json     # prints the tables again

The products of a recurrence are those of its steps, with a packed matrix; those of attention two, of its gradient five, over
the keys that the cost model counts. Products of less than a five-hundredth of a step's operations count as free, and so do
convolutions.
"""

import collections
import csv
import json
import math
import re
import sys
import time

import compare
import contestants
import protocol
import race
import report

LEAST = 1 / 500  # of a step's operations
RECURRENCES = [cell + end for cell in ("lstm", "gru", "simple_rnn") for end in ("", "_states", "_gradient")]


def extents(text):
    """"f32[32,784] f32[] -> f32[32,512]" as the lists of extents of the operands, and of the results."""
    return [[[int(n) for n in each.split(",") if n] for each in re.findall(r"\w+\[([\d,]*)\]", side)] for side in text.split("->")]


def product(x, w, y):
    """((batch, m, n, k), layout) of y = x w by extents, where x or w may be transposed. Rows of all of a batch are
    joined if w is one matrix."""
    m, n, batch = y[-2], y[-1], math.prod(y[:-2])
    inner = next((k for k in x[-2:] if k != m), m)
    layout = ("n" if x[-1] == inner else "t") + ("n" if w[-2] == inner else "t")
    return ((1, batch * m, n, inner) if len(w) == 2 and layout[0] == "n" else (batch, m, n, inner)), layout


def products_of(operation, shape, flop, predicts):
    """Returns [(times, (batch, m, n, k), layout)] of a call; nothing for calls that multiply no matrices."""
    name, (operands, results) = re.split(r"[ ,(]", operation)[0], extents(shape)
    if name.startswith("matmul"):
        sizes, layout = product(operands[0], operands[1], results[0])
        return [(1, sizes, layout[0] + "p" if predicts and sizes[0] == 1 and layout[0] == "n" else layout)]
    if name in ("attention", "attention_gradient"):
        alike = [each for each in operands if len(each) == 4 and math.prod(each) > 1]  # queries first, keys and values last
        (batch, length, heads, width), keys = alike[0], alike[-1][1]
        forward = name == "attention"
        scores, sums = (batch * heads, length, keys, width), (batch * heads, length, width, keys)
        turned = (batch * heads, keys, width, length)
        all_of_them = [(scores, "nt"), (sums, "nn")] if forward else [(scores, "nt")] * 2 + [(turned, "tn")] * 2 + [(sums, "nn")]
        share = flop / (len(all_of_them) * 2 * math.prod(scores))
        return [(share, *each) for each in all_of_them]
    if name in RECURRENCES and any(len(each) == 2 for each in operands):
        batch, (inner, columns) = operands[0][0], next(each for each in operands if len(each) == 2)
        if name.endswith("_gradient"):
            inner, columns = columns, inner
        steps = round(flop / (2 * batch * inner * columns))
        return [(steps, (1, batch, columns, inner), "np")] if steps > 1 else []
    return []


def variants(sizes, layout):
    """The forms in which libraries may compute a product: (sizes, layout)."""
    batch, m, n, k = sizes
    if batch > 1:
        return [(sizes, layout)]
    if layout == "tn":
        return [(sizes, layout), ((batch, n, m, k), layout)]
    return [(sizes, layout), *((sizes, other) for other in ("nn", "nt") if other != layout)]


def row_of(sizes, layout):
    return f"product_{'_'.join(map(str, sizes))}_{layout}/forward/1"


ANY = row_of((1, 2, 2, 2), "nn")


class Limits(compare.Comparison):
    """A comparison that measures the products of its rows, too."""

    def wanted(self):
        """Rows that are measured, by this run or by one that it resumes."""
        return [row for row in self.stored["rows"] if re.search(self.o.only, row) and self.measured(row)]

    def set_up(self, rows):
        super().set_up([*rows, *self.wanted(), ANY])

    def run(self):
        super().run()
        for row in self.wanted():
            if "calls" not in self.stored["rows"][row][contestants.REFERENCE]:
                self.add_products(row)

    def profile(self, row):
        """The calls of a step of ours."""
        (ours, _), file = self.contestants_for([row])[contestants.REFERENCE], self.o.work / "calls.csv"
        try:
            for request in (f"prepare {row} time -", "run 2", f"profile {file}"):
                ours.ask(request, 900)
        finally:
            ours.close()
        with open(file, encoding="utf-8", newline="") as lines:
            return list(csv.DictReader(lines))

    def add_products(self, row):
        started, calls = time.monotonic(), self.profile(row)
        total, predicts, listed = sum(float(c["flops"]) for c in calls), row.split("/")[1] == "inference", []
        everybody = self.contestants_for([ANY])
        try:
            for call in calls:
                found = products_of(call["operation"], call["shape"], float(call["flops"]), predicts)
                entry = {"operation": call["operation"], "shape": call["shape"], "layer": call["layer"], "phase": call["phase"],
                         "seconds": float(call["median_ms"]) / 1e3}
                if float(call["flops"]) >= LEAST * total and found:
                    entry["products"] = [[times, self.measured_product(everybody, sizes, layout)] for times, sizes, layout in found]
                listed.append(entry)
        finally:
            for contestant, _ in everybody.values():
                contestant.close()
        self.stored["rows"][row][contestants.REFERENCE]["calls"] = listed
        self.store()
        print(f"{row}: products ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)

    def measured_product(self, everybody, sizes, layout):
        """Measures a product once; returns its row."""
        name, known = row_of(sizes, layout), self.stored.setdefault("products", {})
        if name in known:
            return name
        settings = race.Settings(min(self.o.turn, 0.05), self.o.rounds, patience=300, processor_time=self.o.threads == 1)
        for form in variants(sizes, layout):
            found = known.setdefault(name, {})
            for way, result in race.Race(everybody, settings, "-").run(row_of(*form), False).items():
                if "median" in result and "error" not in result:
                    found[f"{way} {form[1]}" if form[0] == sizes else f"{way} {form[1]}, turned"] = result["median"]
        return name


def own_form(name):
    """Our product in the layout of the call."""
    return f"{contestants.REFERENCE} {name.split('/')[0][-2:]}"


def sums(stored, row):
    """Seconds of a row: our products alone, the fastest ones, our calls that are products, and the others."""
    known, alone, fastest, within, others = stored["products"], 0, 0, 0, 0
    for call in stored["rows"][row][contestants.REFERENCE]["calls"]:
        within += call["seconds"] if "products" in call else 0
        others += 0 if "products" in call else call["seconds"]
        for times, name in call.get("products", ()):
            alone += times * known[name][own_form(name)]
            fastest += times * min(known[name].values())
    return alone, fastest, within, others


def text(stored):
    """The tables, in Markdown."""
    rows = [row for row, results in stored["rows"].items() if "calls" in results.get(contestants.REFERENCE, {})]
    lines = []
    for row in rows:
        s, (alone, fastest, within, others) = report.summary(row, stored["rows"][row]), sums(stored, row)
        if fastest:
            lines.append([row, f"{report.time_of(s['peer_time'])}, {s['peer']}", report.time_of(s["default_time"]), f"{s['ratio']:.2f}",
                          *map(report.time_of, (within, others, alone, fastest)), f"{s['peer_time'] / fastest:.2f}"])
    parts = ["## How fast a row could be", report.table(["row", "fastest peer", "ours", "times as fast", "its products", "the rest", "ours alone",
                                                         "fastest alone", "limit"], lines)]
    for row in rows:
        seen = collections.OrderedDict()
        for call in stored["rows"][row][contestants.REFERENCE]["calls"]:
            key = re.split(r"[ ,(]", call["operation"])[0] if "products" not in call else call["operation"], call["shape"]
            entry = seen.setdefault(key, [0, 0.0, call.get("products", ())])
            entry[0] += 1
            entry[1] += call["seconds"]
        whole, lines = sum(entry[1] for entry in seen.values()), []
        for (operation, shape), (count, seconds, products) in sorted(seen.items(), key=lambda each: -each[1][1])[:16]:
            own = best = ways = ""
            if products:
                known = [(times, stored["products"][name], own_form(name)) for times, name in products]
                own = report.time_of(count * sum(times * of[form] for times, of, form in known))
                best = report.time_of(count * sum(times * min(of.values()) for times, of, _ in known))
                ways = ", ".join(dict.fromkeys(min(of, key=of.get) for _, of, _ in known))
            lines.append([f"{count} x {operation[:40]}", shape[:70], report.time_of(seconds), f"{100 * seconds / whole:.0f} %", own, best, ways])
        parts += [f"## {row}", report.table(["calls", "shape", "in a step", "share", "ours alone", "fastest alone", "whose"], lines)]
    return "\n\n".join(parts) + "\n"


def main():
    options = compare.arguments()
    if options.report:
        print(text(json.loads(options.report.read_text(encoding="utf-8"))), end="")
        return
    limits = Limits(options)
    try:
        limits.run()
    finally:
        limits.store()
        print(text(limits.stored), end="")


if __name__ == "__main__":
    main()
