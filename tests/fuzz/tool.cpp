// The objects this tool shares with the test may have doctest in their precompiled header, which then wants the rest of it.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <fuzz/fuzz.hpp>
#include <fuzz/source.hpp>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

/// The fuzzer as a program.
///
///   fuzz [--seed N] [--count N | --seconds S] [--only OPERATION] [--most INSTRUCTIONS]   checks random programs
///   fuzz --show --seed N                              prints a program and its C++
///   fuzz --file PROGRAM                               checks a program written as text ("-": from standard input)
///   fuzz --emit FILE --seed N --count N               writes a source to compile (fuzz_compiled)

namespace {

using namespace tapegraph::fuzz;

struct options {
    campaign run;
    std::string emit, file;
    bool show = false;
};

options parse(int argc, char** argv) {
    options o;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--show") {
            o.show = true;
            continue;
        }
        if (i + 1 == argc) throw tapegraph::argument_error("'" + name + "' needs a value");
        const std::string value = argv[++i];
        if (name == "--seed")
            o.run.first_seed = std::stoull(value);
        else if (name == "--count")
            o.run.count = std::stoll(value);
        else if (name == "--seconds")
            o.run.seconds = std::stod(value), o.run.count = 0;
        else if (name == "--only")
            o.run.programs.only = operation_named(value).name;
        else if (name == "--most")
            o.run.programs.most_instructions = std::stoi(value);
        else if (name == "--emit")
            o.emit = value;
        else if (name == "--file")
            o.file = value;
        else
            throw tapegraph::argument_error("unknown option '" + name + "'");
    }
    return o;
}

int check_file(const std::string& name) {
    std::ifstream stream;
    if (name != "-") stream.open(name);
    std::istream& in = name == "-" ? std::cin : stream;
    program p = from_text({std::istreambuf_iterator<char>(in), {}});
    statistics counts;
    const finding found = check(p, counts);
    std::printf("%s%s\n", to_text(p).c_str(), found.ok() ? "nothing found" : (found.what + ": " + found.text).c_str());
    return found.ok() ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) try {
    const options o = parse(argc, argv);
    if (!o.file.empty()) return check_file(o.file);
    if (o.show) {
        const program p = generate(o.run.first_seed, o.run.programs);
        std::printf("%s\n%s", to_text(p).c_str(), to_test_case(p, o.run.first_seed, "").c_str());
        return 0;
    }
    if (!o.emit.empty()) {
        std::ofstream(o.emit) << to_source(o.run.first_seed, static_cast<int>(o.run.count));
        return 0;
    }
    const outcome result = run(o.run);
    for (const std::string& text : result.failures) std::printf("%s\n", text.c_str());
    for (const std::string& name : result.counts.programs >= 2000 ? result.unused : std::vector<std::string>())
        std::printf("no program had %s\n", name.c_str());
    const statistics& c = result.counts;
    std::printf(
        "%lld programs, %lld instructions, %lld nodes, %lld kernel calls; %lld in forward mode; %lld instructions "
        "under "
        "vmap; %lld derivatives differenced, %lld near kinks; %lld with a symbolic batch; %zu failures; %.1f s\n",
        static_cast<long long>(c.programs), static_cast<long long>(c.instructions), static_cast<long long>(c.nodes),
        static_cast<long long>(c.steps), static_cast<long long>(c.tangents), static_cast<long long>(c.mapped),
        static_cast<long long>(c.differences), static_cast<long long>(c.kinks), static_cast<long long>(c.symbolic),
        result.failures.size(), result.seconds);
    return result.failures.empty() ? 0 : 1;
} catch (const std::exception& e) {
    std::fprintf(stderr, "fuzz: %s\n", e.what());
    return 2;
}
