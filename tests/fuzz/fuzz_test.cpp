#include <fuzz/fuzz.hpp>
#include <fuzz/shrink.hpp>
#include <fuzz/source.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

/// Random programs, checked; and the checker, the shrinker and the printed form checked by mistakes that are put in.
///
/// TAPEGRAPH_FUZZ_SECONDS=3600 runs for so long, TAPEGRAPH_FUZZ_SEED=N starts elsewhere.

namespace tg = tapegraph;
using namespace tapegraph::fuzz; // the fuzzer's names only

namespace {

std::string environment(const char* name) {
    const char* const text = std::getenv(name);
    return text == nullptr ? std::string() : text;
}

int computed(const program& p) {
    return static_cast<int>(
        std::count_if(p.code.begin(), p.code.end(), [](const instruction& c) { return !c.leaf(); }));
}

// The first program of a few thousand in which something of this kind is found, made small.
program found_and_shrunk(const std::string& what, const check_options& options, const std::string& only = {}) {
    statistics counts;
    for (std::uint64_t seed = 1; seed < 3000; ++seed) {
        program p = generate(seed, {.only = only});
        const finding f = check(p, counts, options);
        if (f.what == what) return shrink_failure(p, f, options);
    }
    FAIL("nothing was found");
    return {};
}

/// A cube whose derivative is that of a square.
struct wrong_cube_op : tg::map_op<1> {
    static constexpr std::string_view name = "wrong_cube";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return x * x * x;
    }
    static constexpr auto vjp(auto dy, auto x, auto) { return dy * (2 * x); }
};
/// A cumulative sum that starts over in the middle of a long axis: its test pretends so.
struct forgetful_sum {
    auto operator()(const auto& x, const attributes&) const { return cumulative_sum(x, -1); }
};
/// Padding with a number that says it is linear: forward mode pads tangents with the number.
struct careless_pad_op : tg::pad_op {
    static constexpr std::string_view name = "careless_pad";
    static constexpr tg::linearity linear = tg::linearity::joint;
};
struct careless_pad {
    static constexpr bool alone = true; // no vmap
    auto operator()(const auto& x, const attributes&) const {
        const tg::shape from = x.shape();
        tg::shape target;
        target.attach(from.table());
        target.push_back(from[0] + 1);
        auto box = tg::detail::whole_slice();
        box.fill = 1.5;
        return tg::invoke<careless_pad_op>(box, &target, std::source_location::current(), x);
    }
};

} // namespace

template <class T>
struct tapegraph::runtime::kernel<careless_pad_op, T> : kernel<tapegraph::pad_op, T> {};

TEST_CASE("random programs") {
    campaign c;
    c.count = 6000;
    c.most_failures = 3;
    if (const std::string seconds = environment("TAPEGRAPH_FUZZ_SECONDS"); !seconds.empty())
        c.seconds = std::stod(seconds), c.count = 0;
    if (const std::string seed = environment("TAPEGRAPH_FUZZ_SEED"); !seed.empty()) c.first_seed = std::stoull(seed);
    const outcome result = run(c);
    for (const std::string& text : result.failures) FAIL_CHECK(text);
    if (c.count > 0) {
        for (const std::string& name : result.unused) FAIL_CHECK("no program had " << name);
        // Enough of everything was looked at.
        CHECK(result.counts.programs == c.count);
        CHECK(result.counts.differences > c.count * 6 / 10);
        CHECK(result.counts.kinks < c.count / 50);
        CHECK(result.counts.symbolic > c.count / 2);
        CHECK(result.counts.second_differences > c.count * 5 / 10);
        CHECK(result.counts.tangents > c.count * 8 / 10);
        CHECK(result.counts.mapped > 2 * c.count);
        CHECK(result.counts.epilogues > c.count / 100);
        CHECK(result.counts.product_epilogues > c.count / 100);
    }
    MESSAGE(result.counts.programs << " programs, " << result.counts.nodes << " nodes, " << result.counts.epilogues
                                   << " epilogues, " << result.seconds << " s");
}

TEST_CASE("a program survives being printed and read, and gives the same source") {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        const program p = generate(seed);
        const program again = from_text(to_text(p));
        statistics counts;
        program evaluated = again;
        REQUIRE(check(evaluated, counts).ok());
        REQUIRE(to_text(evaluated) == to_text(p));
        REQUIRE(to_test_case(evaluated, seed, "") == to_test_case(p, seed, ""));
        REQUIRE(to_text(generate(seed)) == to_text(p));
    }
    CHECK_THROWS_AS(from_text("v0 = input (1) [0, 1]\nv2 = tanh v0\n"), tg::argument_error);
    CHECK_THROWS_AS(from_text("v0 = tanh v1\n"), tg::argument_error);
    CHECK_THROWS_AS(from_text("v0 = input (1) [0, 1]\noutputs v1\n"), tg::argument_error);
    program unknown = from_text("v0 = input (1) [0, 1]\nv1 = tan_of_nothing v0\noutputs v1\n");
    statistics counts;
    CHECK(check(unknown, counts).what == "error");
}

TEST_CASE("a wrong derivative is found and shrunk to one operation on one number") {
    static_assert(tg::ir::operation_binding<wrong_cube_op>::bound);
    operation op = formula<double>(
        "wrong_cube", [](const auto& x, const attributes&) { return tg::apply<wrong_cube_op>(x); }, [] {},
        "wrong_cube(x)", {{-5, 5}});
    op.weight = 0; // for this test alone
    add_operation(op);
    const program p = found_and_shrunk("differences", {}, "wrong_cube");
    INFO(to_text(p));
    CHECK(computed(p) == 1);
    CHECK(p.size() <= 2);
    CHECK(p.code.back().op == "wrong_cube");
    CHECK(p.code[0].dims.empty());
}

TEST_CASE("a wrong tangent is found and shrunk to one operation") {
    static_assert(tg::ir::operation_binding<careless_pad_op>::bound);
    operation op = make_operation<double>("careless_pad", careless_pad{});
    op.weight = 0;
    op.accepts = [](const std::vector<array>& x, const attributes&) { return x[0].dims.size() == 1; };
    op.draw = [](choices&, const std::vector<extents>& x, attributes&) { return x[0].size() == 1; };
    op.source = [](const std::vector<std::string>& x, const attributes&) { return "careless_pad(" + x[0] + ")"; };
    add_operation(op);
    const program p = found_and_shrunk("forward", {}, "careless_pad");
    INFO(to_text(p));
    CHECK(computed(p) == 1);
    CHECK(p.code.back().op == "careless_pad");
}

TEST_CASE("a wrong value is found and keeps the extents it needs") {
    operation op = make_operation<double>("forgetful_sum", forgetful_sum{});
    op.weight = 0;
    op.draw = [](choices&, const std::vector<extents>& x, attributes&) { return !x[0].empty(); };
    op.source = [](const std::vector<std::string>& x, const attributes&) { return "forgetful_sum(" + x[0] + ")"; };
    op.reference = [](const std::vector<array>& x, const attributes&) { // pretends to start over after four
        array y(x[0].dims);
        const std::int64_t n = x[0].dims.back();
        for (std::int64_t i = 0; i < y.size(); ++i) y[i] = x[0][i] + (i % n == 0 || i % n == 4 ? 0 : y[i - 1]);
        return y;
    };
    add_operation(op);
    const program p = found_and_shrunk("value", {}, "forgetful_sum");
    INFO(to_text(p));
    CHECK(computed(p) == 1);
    CHECK(p.size() == 2);
    CHECK(p.code[0].dims == extents{5});
}

TEST_CASE("broken passes are found and shrunk to a few instructions") {
    const auto swapped_subtraction = [](tg::ir::trace& t) {
        for (int i = 0; i < t.nodes.size(); ++i)
            if (t.is(i, tg::ir::descriptor_of<tg::subtract_op>))
                std::swap(t.arguments[t.nodes[i].first_argument], t.arguments[t.nodes[i].first_argument + 1]);
    };
    // Drops an adjoint where a value is used twice: the second addend becomes the first.
    const auto lost_addend = [](tg::ir::trace& t) {
        for (int i = 0; i < t.nodes.size(); ++i)
            if (t.is(i, tg::ir::descriptor_of<tg::add_op>) && t.same_shape(t.argument(i, 0), t.argument(i, 1)))
                t.arguments[t.nodes[i].first_argument + 1] = t.argument(i, 0);
    };
    // Common subexpressions that forget attributes: two reductions of one value over different axes.
    const auto careless_merging = [](tg::ir::trace& t) {
        for (int i = 0; i < t.nodes.size(); ++i)
            for (int k = 0; k < i; ++k)
                if (t.is(i, tg::ir::descriptor_of<tg::cumulative_sum_op>) && t.nodes[k].op == t.nodes[i].op)
                    for (int w = 0; w < t.nodes[i].op->words; ++w)
                        t.words[t.nodes[i].words + w] = t.words[t.nodes[k].words + w];
    };
    for (const auto& pass : {+swapped_subtraction, +lost_addend, +careless_merging}) {
        const program p =
            found_and_shrunk("passes", {.after_passes = pass}, pass == +careless_merging ? "cumulative_sum" : "");
        INFO(to_text(p));
        CHECK(computed(p) <= 3);
        statistics counts;
        program healthy = p;
        CHECK(check(healthy, counts).ok());
    }
}

TEST_CASE("a trace the verifier refuses is found") {
    const auto wrong_shape = [](tg::ir::trace& t) {
        for (int i = 0; i < t.nodes.size(); ++i)
            if (t.is(i, tg::ir::descriptor_of<tg::transpose_op>)) t.nodes[i].rank = 0;
    };
    const program p = found_and_shrunk("verifier", {.after_passes = wrong_shape}, "transpose");
    INFO(to_text(p));
    CHECK(computed(p) <= 2);
}

TEST_CASE("the shrinker gives up nothing that is needed") {
    // Fails whenever a tanh feeds, at any distance, a sum.
    const auto fails = [](program& p) {
        run_eagerly(p, leaves_of(p), true);
        std::vector<bool> after_tanh(p.code.size(), false);
        bool found = false;
        for (std::size_t i = 0; i < p.code.size(); ++i) {
            after_tanh[i] = p.code[i].op == "tanh";
            for (const int k : p.code[i].operands)
                after_tanh[i] = after_tanh[i] || after_tanh[static_cast<std::size_t>(k)];
            found = found || (after_tanh[i] && p.code[i].op == "sum");
        }
        return found;
    };
    int seen = 0;
    for (std::uint64_t seed = 1; seed < 100000 && seen < 5; ++seed) {
        program p = generate(seed);
        if (!fails(p)) continue;
        ++seen;
        const program smallest = shrink(p, fails);
        INFO(to_text(smallest));
        CHECK(smallest.size() == 3);
        CHECK(computed(smallest) == 2);
    }
    CHECK(seen == 5);
}
