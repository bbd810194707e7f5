"""Rows of a group: everybody's numbers are compared, then all take turns."""

import dataclasses
import math
import statistics
import time

import protocol

TOLERANCE = 1e-4
DIGEST = 17  # numbers of one result's digest, which belong together


@dataclasses.dataclass
class Settings:
    turn: float = 0.5  # seconds of a contestant's turn, or one step
    rounds: int = 7
    patience: float = 900  # seconds for an answer
    few_checked: bool = False  # five steps are compared in a group's first row only
    processor_time: bool = False
    memory: int = 0  # bytes that contestants may have together; 0: any
    tolerance: float = TOLERANCE
    unchecked: frozenset = frozenset()  # names of those who would compile for a check alone


def difference(numbers, expected, training, tolerance=TOLERANCE):
    """None, or how they differ: losses relative to each, a digest's numbers relative to its largest."""
    if len(numbers) != len(expected):
        return f"{len(numbers)} numbers instead of {len(expected)}"
    for i, (number, right) in enumerate(zip(numbers, expected)):
        first = i - i % DIGEST
        scale = abs(right) if training else max(map(abs, expected[first:first + DIGEST]))
        # Losses of a model that has learnt its batch are near zero, where rounding of scores is all of them: after four steps of the
        # largest one PyTorch and TensorFlow have 1.8630e-4 and 1.8666e-4.
        allowed = tolerance * max(scale, 1e-2 if training else 0)
        if not abs(number - right) <= allowed:
            what = f"loss {i + 1}" if training else f"number {i + 1}"
            return f"{what} is {number:.8g}, ours {right:.8g}"
    return None


def waves(needs, memory):
    """Contestants [(name, bytes)] as lists that fit into memory, the first of all in each."""
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
    """`contestants`: name to (Contestant, function from a row to its own), ours first, which the others must equal."""

    def __init__(self, contestants, settings, weights):
        self.contestants, self.settings, self.weights = contestants, settings, weights
        self.first_row = True

    def ask(self, name, request):
        return self.contestants[name][0].ask(request, self.settings.patience)

    def prepare(self, name, row, purpose, weights):
        self.ask(name, f"prepare {self.contestants[name][1](row)} {purpose} {weights}")

    def run(self, row, has_weights):
        """{name: {...}}: either "error", or what was measured."""
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
        """One after the other, so that each one's memory is its own."""
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

    def wave(self, row, names, results, weights):
        def turn(name, count):
            """Seconds of each step; None for one that failed, which no others are to lose by."""
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
            order = order[1:] + order[:1]  # nobody follows the same one always
        for name in names:
            contestant = self.contestants[name][0]
            if peak := contestant.peak_memory():
                results[name]["peak_memory"] = peak
            if contestant.process is not None:
                try:
                    self.ask(name, "forget")
                except protocol.Failure:
                    pass
