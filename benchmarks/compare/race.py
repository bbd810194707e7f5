"""Runs the rows of a group: first all results are compared, then the contestants alternate."""

import dataclasses
import math
import statistics
import time

import protocol

TOLERANCE = 1e-4
FLOOR = ("seconds", "flop", "bytes", "flop_per_second", "bytes_per_second")
DIGEST = 17  # numbers of one result's digest, which belong together


@dataclasses.dataclass
class Settings:
    turn: float = 0.5  # seconds per turn of a contestant, at least one step
    rounds: int = 7
    patience: float = 900  # seconds for an answer
    few_checked: bool = False  # compare five steps only in a group's first row
    processor_time: bool = False
    memory: int = 0  # bytes that contestants may use together; 0: no limit
    tolerance: float = TOLERANCE
    unchecked: frozenset = frozenset()  # names of those that would compile for a check alone


def difference(numbers, expected, training, tolerance=TOLERANCE):
    """Returns None, or how they differ: losses relative to each, a digest's numbers relative to its
    largest."""
    if len(numbers) != len(expected):
        return f"{len(numbers)} numbers instead of {len(expected)}"
    for i, (number, right) in enumerate(zip(numbers, expected)):
        first = i - i % DIGEST
        scale = abs(right) if training else max(map(abs, expected[first:first + DIGEST]))
        # Losses of a model that has learnt its batch are near zero, where they consist of the
        # rounding of scores: after four steps of the largest one PyTorch and TensorFlow have
        # 1.8630e-4 and 1.8666e-4.
        allowed = tolerance * max(scale, 1e-2 if training else 0)
        if not abs(number - right) <= allowed:
            what = f"loss {i + 1}" if training else f"number {i + 1}"
            return f"{what} is {number:.8g}, ours {right:.8g}"
    return None


def waves(needs, memory):
    """Splits contestants [(name, bytes)] into lists that fit into memory, with the first one in
    each."""
    if not needs:
        return []
    (reference, base), lists, used = needs[0], [], 0
    for name, need in needs[1:]:
        if not lists or (memory and used + need > memory):
            lists.append([reference])
            used = base
        lists[-1].append(name)
        used += need
    return lists or [[reference]]


class Race:
    """`contestants` maps names to (Contestant, function from a row to its own), with ours first,
    which the others must equal."""

    def __init__(self, contestants, settings, weights):
        self.contestants, self.settings, self.weights = contestants, settings, weights
        self.first_row = True

    def ask(self, name, request):
        return self.contestants[name][0].ask(request, self.settings.patience)

    def prepare(self, name, row, purpose, weights):
        self.ask(name, f"prepare {self.contestants[name][1](row)} {purpose} {weights}")

    def run(self, row, has_weights):
        """Returns {name: {...}} with either "error" or the measurements."""
        results = {name: {} for name in self.contestants}
        training = "training" in row.split("/")[1]
        steps = 5 if training and (self.first_row or not self.settings.few_checked) else 1
        self.check(row, results, training, steps, has_weights)
        needs = [(name, result["peak_memory"] or 0) for name, result in results.items() if "error" not in result]
        if needs and needs[0][0] == next(iter(self.contestants)):
            for wave in waves(needs, self.settings.memory):
                self.wave(row, wave, results, self.weights if has_weights else "-")
        for name, result in results.items():
            seconds, processor = result.pop("seconds", []), result.pop("processor", [])
            if "error" in result or not seconds:
                continue
            judged = processor if self.settings.processor_time else seconds
            result |= {"median": statistics.median(judged), "best": min(judged), "steps": len(seconds),
                       "processor": statistics.median(processor)}
        self.first_row = False
        return results

    def check(self, row, results, training, steps, has_weights):
        """Checks one contestant after the other, so that each has the memory to itself."""
        reference, expected = next(iter(self.contestants)), None
        for name, result in results.items():
            if name in self.settings.unchecked:
                result["peak_memory"] = 0
                continue
            try:
                contestant = self.contestants[name][0]
                fresh = contestant.process is None
                if not fresh:
                    self.ask(name, "forget")
                contestant.peak_memory(reset=True)
                self.prepare(name, row, "check", self.weights if has_weights and name != reference else "-")
                if has_weights and name == reference:
                    self.ask(name, f"save {self.weights}")
                numbers = self.ask(name, "check 1")
                if fresh:
                    result["first"] = contestant.age()
                if steps > 1:
                    numbers += self.ask(name, f"check {steps - 1}")
                result["numbers"] = numbers
                result["peak_memory"] = contestant.peak_memory()
                self.ask(name, "forget")
                if name == reference:
                    expected = numbers
                if expected is None:
                    raise protocol.Failure("there is nothing of ours to compare with")
                if not all(map(math.isfinite, numbers)):
                    raise protocol.Failure("numbers that are not finite")
                if wrong := difference(numbers, expected, training, self.settings.tolerance):
                    raise protocol.Failure(f"differs: {wrong}")
            except protocol.Failure as e:
                result["error"] = str(e)
                result.pop("peak_memory", None)

    def floor(self, name, result):
        """Adds what bounds a step of ours, where its work can be profiled."""
        try:
            result["floor"] = dict(zip(FLOOR, self.ask(name, "floor")))
        except protocol.Failure:
            pass

    def wave(self, row, names, results, weights):
        def turn(name, count):
            """Returns seconds of each step; None for a contestant that failed, which must not
            affect the others."""
            try:
                processor, *seconds = self.ask(name, f"run {count}")
                return seconds, processor / count
            except protocol.Failure as e:
                results[name]["error"] = str(e)
                return None

        counts = {}
        for name in names:
            try:
                self.contestants[name][0].peak_memory(reset=True)
                self.prepare(name, row, "time", weights)
            except protocol.Failure as e:
                results[name]["error"] = str(e)
                continue
            turn(name, 1)  # compiles, plans memory
            start = time.perf_counter()
            if "error" not in results[name] and turn(name, 1):
                counts[name] = int(min(max(self.settings.turn / (time.perf_counter() - start), 1), 2000))
        order = list(counts)
        for _ in range(self.settings.rounds):
            for name in order:
                measured = turn(name, counts[name]) if "error" not in results[name] else None
                if measured:
                    results[name].setdefault("seconds", []).extend(measured[0])
                    results[name].setdefault("processor", []).append(measured[1])
            order = order[1:] + order[:1]  # so that nobody always follows the same one
        for name in names:
            contestant = self.contestants[name][0]
            if name == names[0] and name in counts:
                self.floor(name, results[name])
            if peak := contestant.peak_memory():
                results[name]["peak_memory"] = peak
            if contestant.process is not None:
                try:
                    self.ask(name, "forget")
                except protocol.Failure:
                    pass
