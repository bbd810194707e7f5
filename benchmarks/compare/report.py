"""Formats measurements as tables."""

import contestants


def time_of(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def measured(results, libraries=None):
    """Returns {name: median} of a row's contestants that have one and compute the same."""
    of = {way.name: way.library for way in contestants.WAYS}
    return {name: result["median"] for name, result in results.items()
            if "median" in result and "error" not in result and (libraries is None or (of.get(name) == contestants.OURS) == libraries)}


def fastest(times):
    return min(times, key=times.get) if times else None


def ratio(above, below):
    return f"{above / below:.2f}" if above and below else "-"


def summary(row, results):
    """Returns a row's figures: the fastest peer, ours with default settings, the fastest of ours;
    None where missing."""
    ours, peers = measured(results, True), measured(results, False)
    best, peer, default = fastest(ours), fastest(peers), ours.get(contestants.REFERENCE)
    return {"row": row, "peer": peer, "peer_time": peers.get(peer), "default_time": default, "best": best, "best_time": ours.get(best),
            "ratio": peers[peer] / default if peer and default else None,
            "best_ratio": peers[peer] / ours[best] if peer and best else None,
            "graph": ratio(ours.get("TapeGraph eager"), default), "fast": ratio(ours.get("TapeGraph direct"), ours.get("TapeGraph fast"))}


def way_of_ours(name):
    return "none" if name is None else name.removeprefix(contestants.REFERENCE).strip() or "as it comes"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def ratios(rows):
    lines = []
    for row, results in rows.items():
        s = summary(row, results)
        show = {key: time_of(s[key]) if s[key] else "-" for key in ("peer_time", "default_time", "best_time")}
        lines.append([row, f"{show['peer_time']} ({s['peer'] or 'none'})", show["default_time"],
                      f"{s['ratio']:.2f}" if s["ratio"] else "-", f"{show['best_time']} ({way_of_ours(s['best'])})",
                      f"{s['best_ratio']:.2f}" if s["best_ratio"] else "-", s["graph"], s["fast"]])
    return table(["row", "fastest peer", "ours", "times as fast", "fastest of ours", "times as fast", "eager / graph", "direct / fast"], lines)


def everybody(rows):
    """A table of the medians of all contestants."""
    names = [way.name for way in contestants.WAYS if any(way.name in results for results in rows.values())]
    lines = []
    for row, results in rows.items():
        times = measured(results)
        lines.append([row] + [time_of(times[name]) if name in times else "-" for name in names])
    return table(["row", *names], lines)


def column(rows, key, show):
    """A table of one figure of all contestants, if any of them has it."""
    chosen = {row: {name: result[key] for name, result in results.items() if result.get(key) and "error" not in result}
              for row, results in rows.items() if row.split("/")[0] in contestants.STUDIES}
    chosen = {row: figures for row, figures in chosen.items() if figures}
    names = [way.name for way in contestants.WAYS if any(way.name in figures for figures in chosen.values())]
    return table(["row", *names], [[row] + [show(figures[name]) if name in figures else "-" for name in names]
                                   for row, figures in chosen.items()]) if chosen else ""


def floors(rows):
    """A table of what bounds our steps: `seconds` is the sum over calls of operations over the peak, or
    bytes over the rate of memory or of the cache that holds them, if that takes longer."""
    lines = []
    for row, results in rows.items():
        ours = results.get(contestants.REFERENCE, {})
        if "median" in ours and (floor := ours.get("floor")):
            peer = summary(row, results)["peer_time"]
            lines.append([row, f"{floor['flop'] / 1e9:.3g}", f"{floor['bytes'] / 1e6:.3g}", f"{floor['flop_per_second'] / 1e9:.0f}",
                          f"{floor['bytes_per_second'] / 1e9:.1f}", time_of(floor["seconds"]), ratio(floor["seconds"], ours["median"]),
                          ratio(peer, floor["seconds"])])
    return table(["row", "GFLOP", "MB", "GF/s at most", "GB/s of memory", "floor", "floor / ours", "fastest peer / floor"], lines) if lines else ""


def failures(rows):
    return [f"{row}, {name}: {result['error']}" for row, results in rows.items() for name, result in results.items() if "error" in result]


def megabytes(size):
    return f"{size / 1e6:.0f} MB"


def shipping(stored):
    lines = []
    if ours := stored.get("shipped"):
        lines.append(["TapeGraph, a CNN's training program, stripped", f"{ours['bytes'] / 1e6:.2f} MB", "the same"])
    for peer, about in stored.get("peers", {}).items():
        if "bytes" in about:
            lines.append([f"{peer} {next(iter(about['versions'].values()))}, installed", megabytes(about["bytes"]),
                          megabytes(about["bytes_without_gpu"])])
    return table(["", "bytes to ship", "without files that only GPUs use"], lines) if lines else ""


def text(stored):
    """Returns the whole report, in Markdown."""
    m, rows, load = stored["machine"], stored["rows"], stored["load"]
    clock = "processor time" if stored["options"]["processor_time"] else "wall clock"
    versions = "; ".join(f"{peer} " + ", ".join(f"{p} {v}" for p, v in about.get("versions", {}).items()) if "versions" in about
                         else f"{peer}: {about['error']}" for peer, about in stored["peers"].items())
    parts = [f"# Compared on {stored['date']}",
             f"{m['processor']}, {m['cores']} cores, {megabytes(m['memory'])}; {stored['options']['threads']} threads, {clock}, medians of turns. "
             f"{m['compiler']}, `{' '.join(m['flags'])}`, commit {m['commit'][:12]}. Load average before {load['before']}, after "
             f"{load.get('after', 'not finished')}. {versions}."]
    if rows:
        parts += ["## Ratios", ratios(rows), "## Everybody's medians", everybody(rows)]
        for title, key, show in (("Time to the first step, from the start of the process", "first", time_of),
                                 ("Peak memory of the process", "peak_memory", megabytes)):
            if found := column(rows, key, show):
                parts += [f"## {title}", found]
    if found := floors(rows):
        parts += ["## Floors", found]
    if sizes := shipping(stored):
        parts += ["## Bytes to ship", sizes]
    if "shipped" in stored:
        parts.append(f"`{stored['shipped']['program']}` costs the compiler {stored['shipped']['compile_processor_seconds']:.1f} s of processor time.")
    if stored.get("beside"):
        parts += ["## Beside busy processes", beside(stored["beside"])]
    if complaints := failures(rows) + [f"{row}: {why}" for row, why in stored.get("left_out", {}).items()]:
        parts += ["## Left out", "\n".join(f"- {line}" for line in complaints)]
    return "\n\n".join(part for part in parts if part) + "\n"


def beside(measurements):
    """`share` is the slowdown of any program that shares the cores fairly with this many others."""
    lines = [[m["row"], m["name"], str(m["busy"]), time_of(m["idle"]), time_of(m["beside"]), f"{m['beside'] / m['idle']:.2f}",
              f"{m['share']:.2f}", f"{m['beside'] / m['idle'] / m['share']:.2f}"] for m in measurements]
    return table(["row", "contestant", "busy", "idle", "beside them", "slower", "share lost", "slower / share"], lines)
