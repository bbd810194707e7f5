"""Enumerates the executions of programs of a few instructions under PTX's memory model, for
ptx_litmus.py.

PTX ISA, "Memory Consistency Model", without proxies, as formalized by D. Lustig, S. Sahasrabuddhe,
O. Giroux: A Formal Analysis of the NVIDIA PTX Memory Consistency Model, ASPLOS 2019. Reads and
writes access whole locations. Where the model leaves an order open (coherence of writes that race)
no order is assumed, which allows the most outcomes.
"""

import itertools


class Event:
    """An action of a thread: R, W, RMW (adds 1), F (a fence), and the halves of barriers, ARRIVE
    and WAIT. `order` is weak, relaxed, acquire, release, acq_rel or sc. `needs` is the least value
    that a read may see, where a loop waits for it."""

    def __init__(self, kind, place=None, order="weak", scope="gpu", value=None, needs=None, name=None):
        self.kind, self.place, self.order, self.scope = kind, place, order, scope
        self.value, self.needs, self.name = value, needs, name
        self.reads, self.writes = kind in ("R", "RMW"), kind in ("W", "RMW")
        self.memory = self.reads or self.writes
        self.strong = order != "weak"
        self.releases = order in ("release", "acq_rel", "sc")
        self.acquires = order in ("acquire", "acq_rel", "sc")


def read(place, order="weak", scope="gpu", needs=None, name=None):
    return Event("R", place, order, scope, needs=needs, name=name)


def write(place, value, order="weak", scope="gpu"):
    return Event("W", place, order, scope, value=value)


def add(place, order, scope="gpu"):
    return Event("RMW", place, order, scope)


def fence(order, scope="gpu"):
    return Event("F", None, order, scope)


def barrier(name, scope="cta", release="release", acquire="acquire"):
    """Returns both halves."""
    return [Event("ARRIVE", name, release, scope), Event("WAIT", name, acquire, scope)]


def syncthreads(name):
    return barrier(name)


def flat(items):
    for item in items:
        if isinstance(item, list):
            yield from flat(item)
        else:
            yield item


def closure(relation, count):
    after = [0] * count
    for a, b in relation:
        after[a] |= 1 << b
    for k in range(count):
        for i in range(count):
            if after[i] >> k & 1:
                after[i] |= after[k]
    return after


class Program:
    """`threads` has (cluster, block), and the actions, for each thread. All run on one GPU."""

    def __init__(self, threads):
        self.events, self.thread, self.where = [], [], []
        places = []
        for events in threads:
            for e in flat(events[1:]):
                if e.memory and e.place not in places:
                    places.append(e.place)
        for place in places:  # the initial values, which precede everything
            self.events.append(Event("W", place, value=0))
            self.thread.append(-1)
            self.where.append(None)
        self.first = len(places)
        for number, (where, *events) in enumerate(threads):
            for e in flat(events):
                self.events.append(e)
                self.thread.append(number)
                self.where.append(where)
        self.count = len(self.events)
        ids = range(self.count)
        self.before = {(a, b) for a in ids for b in ids
                       if a != b and (self.thread[a] == -1 and self.thread[b] != -1
                                      or a < b and self.thread[a] == self.thread[b] != -1)}

    def in_scope(self, a, b):
        scope = self.events[a].scope
        (cluster_a, block_a), (cluster_b, block_b) = self.where[a], self.where[b]
        return (scope in ("gpu", "sys") or scope == "cluster" and cluster_a == cluster_b
                or (cluster_a, block_a) == (cluster_b, block_b))

    def morally_strong(self, a, b):
        x, y = self.events[a], self.events[b]
        if x.memory and y.memory and x.place != y.place:
            return False
        if (a, b) in self.before or (b, a) in self.before:
            return True
        return x.strong and y.strong and self.in_scope(a, b) and self.in_scope(b, a)

    def values(self, source):
        """Returns what each read sees, where `source` gives the write that it reads from; None if
        that is circular."""
        seen = {}

        def value_of(w, visiting):
            if self.events[w].kind == "W":
                return self.events[w].value
            if w in visiting:
                raise ValueError
            return value_of(source[w], visiting | {w}) + 1

        try:
            for r in source:
                seen[r] = value_of(source[r], frozenset())
        except ValueError:
            return None
        return seen

    def outcomes(self):
        """Returns every possible result of an execution: what the named reads see, in order of
        names."""
        ids = range(self.count)
        reads = [i for i in ids if self.events[i].reads]
        choices = [[w for w in ids if w != r and self.events[w].writes and self.events[w].place == self.events[r].place]
                   for r in reads]
        found = set()
        for picked in itertools.product(*choices):
            source = dict(zip(reads, picked))
            seen = self.values(source)
            if seen is None or any(self.events[r].needs is not None and seen[r] < self.events[r].needs for r in reads):
                continue
            result = tuple(sorted((self.events[r].name, seen[r]) for r in reads if self.events[r].name))
            if result not in found and self.allowed(source):
                found.add(result)
        return found

    def synchronizing(self, source, fences):
        """Returns pairs (first of a release pattern, last of an acquire pattern) that
        synchronize."""
        ids, events = range(self.count), self.events
        observed = {(source[r], r) for r in source if self.morally_strong(source[r], r)}
        grown = True
        while grown:  # through chains of read-modify-writes
            more = {(w, r) for w, z in observed for v, r in observed if z == v and events[z].kind == "RMW"}
            grown = not more <= observed
            observed |= more
        after = lambda a, b: (a, b) in self.before
        releases, acquires = [], []
        for a in ids:
            e = events[a]
            if e.writes and e.releases:
                releases.append((a, a))
                releases += [(a, b) for b in ids if after(a, b) and events[b].writes and events[b].strong
                             and events[b].place == e.place]
            if e.reads and e.acquires:
                acquires.append((a, a))
                acquires += [(b, a) for b in ids if after(b, a) and events[b].reads and events[b].strong
                             and events[b].place == e.place]
            if e.kind == "F":
                if e.releases:
                    releases += [(a, b) for b in ids if after(a, b) and events[b].writes and events[b].strong]
                if e.acquires:
                    acquires += [(b, a) for b in ids if after(b, a) and events[b].reads and events[b].strong]
        pairs = {(x, y) for x, w in releases for r, y in acquires
                 if (w, r) in observed and x != y and self.thread[x] != -1 and self.morally_strong_patterns(x, y)}
        for a in ids:
            for b in ids:
                if (events[a].kind == "ARRIVE" and events[b].kind == "WAIT" and events[a].place == events[b].place
                        and events[a].releases and events[b].acquires and self.thread[a] != self.thread[b]
                        and self.in_scope(a, b) and self.in_scope(b, a)):
                    pairs.add((a, b))
        return pairs | set(fences), observed

    def morally_strong_patterns(self, a, b):
        x, y = self.events[a], self.events[b]
        if x.memory and y.memory and x.place != y.place:
            return False
        return (x.strong and y.strong and self.thread[a] != self.thread[b] and self.in_scope(a, b)
                and self.in_scope(b, a))

    def allowed(self, source):
        ids, events = range(self.count), self.events
        strong_fences = [(a, b) for a in ids for b in ids if a < b and events[a].kind == events[b].kind == "F"
                         and events[a].order == events[b].order == "sc" and self.thread[a] != self.thread[b]
                         and self.morally_strong(a, b)]
        for turned in itertools.product((False, True), repeat=len(strong_fences)):
            fences = [(b, a) if t else (a, b) for t, (a, b) in zip(turned, strong_fences)]
            synchronizes, observed = self.synchronizing(source, fences)
            base = closure(self.before | synchronizes, self.count)
            if any(base[i] >> i & 1 for i in ids):
                continue
            cause = [base[i] for i in ids]
            for w, r in observed:
                cause[w] |= base[r]
            if self.coherent(source, cause):
                return True
        return False

    def coherent(self, source, cause):
        ids, events = range(self.count), self.events
        writes = [i for i in ids if events[i].writes]
        forced, open_pairs = set(), []
        for a, b in itertools.combinations(writes, 2):
            if events[a].place != events[b].place:
                continue
            if cause[a] >> b & 1:
                forced.add((a, b))
            elif cause[b] >> a & 1:
                forced.add((b, a))
            elif self.morally_strong(a, b):
                open_pairs.append((a, b))
        for turned in itertools.product((False, True), repeat=len(open_pairs)):
            order = forced | {(b, a) if t else (a, b) for t, (a, b) in zip(turned, open_pairs)}
            later = closure(order, self.count)
            if any(later[i] >> i & 1 for i in ids):
                continue
            coherence = {(a, b) for a in writes for b in writes if later[a] >> b & 1}
            if self.consistent(source, cause, coherence):
                return True
        return False

    def consistent(self, source, cause, coherence):
        events = self.events
        overwrites = {(r, w) for r in source for w in range(self.count) if (source[r], w) in coherence and w != r}
        taken = {(source[r], r) for r in source}
        for a, b in taken | coherence | overwrites:  # causality
            if cause[b] >> a & 1:
                return False
        for z in source:  # atomicity
            if events[z].kind == "RMW" and any((source[z], w) in coherence and (w, z) in coherence
                                               and self.morally_strong(w, z) for w in range(self.count)):
                return False
        together = {(a, b) for a, b in taken | coherence | overwrites if self.morally_strong(a, b)}
        together |= {(a, b) for a, b in self.before
                     if events[a].memory and events[b].memory and events[a].place == events[b].place}
        after = closure(together, self.count)  # sequential consistency of each location
        return not any(after[i] >> i & 1 for i in range(self.count))
