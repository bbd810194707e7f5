#include <fuzz/fuzz.hpp>

#include <fuzz/shrink.hpp>
#include <fuzz/source.hpp>

#include <algorithm>
#include <chrono>

namespace tapegraph::fuzz {

program shrink_failure(const program& p, const finding& found, const check_options& options) {
    statistics ignored;
    // One exception is not another: what a message says before the operands' shapes must stay.
    const auto kind_of = [](const finding& f) {
        return f.what == "error" ? f.text.substr(0, f.text.rfind(": ")) : f.what;
    };
    program smallest = shrink(p, [&](program& candidate) {
        const finding f = check(candidate, ignored, options);
        return f.what == found.what && kind_of(f) == kind_of(found);
    });
    check(smallest, ignored, options); // types and extents as they are now
    return smallest;
}

outcome run(const campaign& c) {
    const auto start = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    outcome result;
    std::vector<std::string> unused;
    for (const operation& op : all_operations())
        if (op.weight > 0) unused.push_back(op.name);
    for (std::uint64_t seed = c.first_seed; static_cast<int>(result.failures.size()) < c.most_failures; ++seed) {
        if (c.count > 0 && seed - c.first_seed >= static_cast<std::uint64_t>(c.count)) break;
        if (c.seconds > 0 && elapsed() > c.seconds) break;
        program p = generate(seed, c.programs);
        for (const instruction& i : p.code) unused.erase(std::remove(unused.begin(), unused.end(), i.op), unused.end());
        const finding found = check(p, result.counts, c.checks);
        if (found.ok()) continue;
        std::string text = "seed " + std::to_string(seed) + ", " + found.what + ": " + found.text + "\n" + to_text(p);
        program smallest = shrink_failure(p, found, c.checks);
        statistics ignored;
        const finding again = check(smallest, ignored, c.checks);
        text += "the smallest program that still shows it, " + again.what + ": " + again.text + "\n" +
                to_text(smallest) + "as a test case (#include <fuzz/compiled.hpp>):\n" +
                to_test_case(smallest, seed, found.what);
        result.failures.push_back(text);
    }
    result.unused = unused;
    result.seconds = elapsed();
    return result;
}

} // namespace tapegraph::fuzz
