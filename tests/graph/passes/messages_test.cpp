#include <support/builders.hpp>
#include <support/settings_guard.hpp>

#include <doctest/doctest.h>

#include <cstring>

namespace messages_test {

/// Which sums over edges need no messages in memory, and that they keep their bits and their errors.

namespace tg = tapegraph;
using namespace builders;

namespace {

template <bool Weighted>
using fused = tg::gather_scatter_add_op<Weighted>;

/// What the pass leaves of a graph: sums of messages, weighted ones, gathers.
struct left {
    int plain, weighted, gathers;
    bool operator==(const left&) const = default;
};
template <class Build>
constexpr left left_of(const Build& build) {
    trace t;
    build(t);
    eliminate_common_subexpressions(t);
    fuse_messages(t);
    eliminate_dead_nodes(t);
    if (!verify(t).ok()) return {-1, -1, -1};
    return {count<fused<false>>(t), count<fused<true>>(t), count<tg::gather_op>(t)};
}

constexpr node edges(trace& t, const char* name, std::initializer_list<std::int64_t> dims = {7}) {
    return input(t, name, dims, dtype::i32);
}
constexpr node messages(trace& t, int axis = 0) { return gather(input(t, "x", {4, 4}), edges(t, "from"), axis); }

static_assert(left_of([](trace& t) {
                  output(t, "y", scatter_add(messages(t), edges(t, "to"), {9, 4}));
              }) == left{1, 0, 0});
static_assert(left_of([](trace& t) { // along the second axis
                  output(t, "y", scatter_add(messages(t, 1), edges(t, "to"), {4, 2}, 1));
              }) == left{1, 0, 0});
static_assert(
    left_of([](trace& t) { // edges of each example
        const node x = input(t, "x", {2, 4, 3});
        output(t, "y", scatter_add(gather(x, edges(t, "from", {2, 7}), 1, 1), edges(t, "to", {2, 7}), {2, 4, 3}, 1, 1));
    }) == left{1, 0, 0});
static_assert(left_of([](trace& t) { // another axis
                  output(t, "y", scatter_add(reshape(messages(t), {4, 7}), edges(t, "to"), {4, 2}, 1));
              }) == left{0, 0, 1});
static_assert(
    left_of([](trace& t) { // the indices have another shape
        output(t, "y", scatter_add(gather(input(t, "x", {4}), edges(t, "from", {7, 2})), edges(t, "to"), {9, 2}));
    }) == left{0, 0, 1});
static_assert(left_of([](trace& t) { // something else reads the messages
                  const node m = messages(t);
                  output(t, "y", scatter_add(m, edges(t, "to"), {9, 4}));
                  output(t, "largest", max(m));
              }) == left{0, 0, 1});
static_assert(left_of([](trace& t) { // an output
                  const node m = messages(t);
                  output(t, "y", scatter_add(m, edges(t, "to"), {9, 4}));
                  output(t, "m", m);
              }) == left{0, 0, 1});
static_assert(left_of([](trace& t) { // a function between
                  output(t, "y", scatter_add(relu(messages(t)), edges(t, "to"), {9, 4}));
              }) == left{0, 0, 1});

constexpr left weighted_by(std::initializer_list<std::int64_t> weights, dtype type = dtype::f64, int axis = 0) {
    return left_of([&](trace& t) {
        const node x = input(t, "x", {4, 4}, type), w = input(t, "w", weights, type);
        output(t, "y", scatter_add(w * gather(x, edges(t, "from"), axis), edges(t, "to"), {4, 4}, axis));
    });
}
static_assert(weighted_by({7, 1}) == left{0, 1, 0} && weighted_by({7, 1}, dtype::f32) == left{0, 1, 0});
static_assert(weighted_by({7, 4}) == left{0, 0, 1}); // one for each number of a message
static_assert(weighted_by({1, 4}) == left{0, 0, 1} && weighted_by({4}) == left{0, 0, 1});
static_assert(weighted_by({}) == left{0, 0, 1} && weighted_by({1, 7}, dtype::f64, 1) == left{0, 0, 1});
static_assert(weighted_by({7, 1}, dtype::bf16) == left{0, 0, 1}); // rounded before it is added
static_assert(weighted_by({7, 1}, dtype::i32) == left{0, 0, 1});

/// A step of two layers of a graph network, the second of weighted sums.
struct network {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {19}), from = batch_input(t, "from", {3}, "batch", dtype::i32),
                   to = batch_input(t, "to", {3}, "batch", dtype::i32), degree = batch_input(t, "degree", {3}),
                   w = variable(t, "w", {19, 17}), u = variable(t, "u", {17, 3});
        const node start = reshape(from, {-1}), end = reshape(to, {-1}), each = reshape(degree, {-1, 1});
        const node h = tanh(matmul(scatter_add(gather(x, start), end, shape_of(x)), w));
        const node y = matmul(h + scatter_add(gather(h, start) * each, end, shape_of(h)), u);
        const node loss = sum(square(y));
        output(t, "loss", loss);
        const auto g = tg::ir::gradient(t, loss.id(), {w.id(), u.id()});
        assign(t, w, w - node(&t, g[0]) * 0.01);
        assign(t, u, u - node(&t, g[1]) * 0.01);
    }
};
static_assert(first_problem<network>() == nullptr);
// The first layer's sum, the second's and its gradient.
static_assert(left_of([](trace& t) { network::build(t); }) == left{1, 2, 0});

struct untouched {
    static constexpr void build(trace& t, tg::ir::schedule& s) {
        network::build(t);
        s = make_schedule(t, false);
    }
};

std::vector<std::int32_t> ends(std::int64_t count, std::int64_t nodes, std::uint32_t seed) {
    std::vector<std::int32_t> v(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = static_cast<std::int32_t>(((i * 2654435761u + seed * 40503u) >> 8) % static_cast<std::uint32_t>(nodes));
    return v;
}
void feed_ends(runner& p, int index, std::vector<std::int32_t>& values) {
    tg::buffer_view v;
    v.data = values.data();
    v.type = dtype::i32;
    v.extents[0] = static_cast<std::int64_t>(values.size()) / 3;
    v.extents[1] = 3;
    v.rank = 2;
    p.program.set_input(index, v);
}

/// The loss and the variables after three steps.
std::vector<std::vector<double>> trained(const tg::ir::program_view& view, std::int64_t nodes) {
    runner p(view);
    for (std::size_t v = 0; v < p.variables.size(); ++v) {
        p.variables[v] = values(static_cast<std::int64_t>(p.variables[v].size()), static_cast<std::uint32_t>(v) + 1);
        p.program.set_variable(static_cast<int>(v), p.variables[v].data());
    }
    const std::vector<double> x = values(nodes * 19, 5), degree = values(nodes * 3, 6);
    std::vector<std::int32_t> from = ends(nodes * 3, nodes, 1), to = ends(nodes * 3, nodes, 2);
    p.feed(0, x, {nodes, 19});
    feed_ends(p, 1, from);
    feed_ends(p, 2, to);
    p.feed(3, degree, {nodes, 3});
    for (int i = 0; i < 3; ++i) p.run();
    auto seen = p.variables;
    seen.push_back({p.scalar(0)});
    return seen;
}

} // namespace

TEST_CASE("messages: a step keeps every bit, for any number of threads and instruction set") {
    const support::settings_guard guard;
    const tg::ir::program_view& passed = tg::ir::compile_program<network>();
    const tg::ir::program_view& raw = tg::ir::lowered<tg::ir::compile_stage<untouched>>::view;
    CHECK(passed.steps.size() < raw.steps.size());
    for (const std::int64_t nodes : {1, 2, 13, 700}) {
        CAPTURE(nodes);
        tg::set_thread_count(1);
        const auto expected = trained(raw, nodes);
        for (const int threads : {1, 2, 3})
            for (auto set : {tg::cpu::instruction_set::baseline, tg::cpu::instruction_set::avx2,
                             tg::cpu::instruction_set::avx512}) {
                tg::set_thread_count(threads);
                tg::cpu::set_instruction_set(set);
                const auto got = trained(passed, nodes), plain = trained(raw, nodes);
                REQUIRE(got.size() == plain.size());
                for (std::size_t k = 0; k < got.size(); ++k)
                    CHECK(std::memcmp(got[k].data(), plain[k].data(), plain[k].size() * sizeof(double)) == 0);
            }
        CHECK(expected.back()[0] > 0);
    }
}

TEST_CASE("messages: an index outside is the error of the operation that the program wrote") {
    runner p(tg::ir::compile_program<network>());
    const std::vector<double> x = values(5 * 19, 5), degree = values(15, 6);
    std::vector<std::int32_t> from = ends(15, 5, 1), to = ends(15, 5, 2);
    p.feed(0, x, {5, 19});
    p.feed(3, degree, {5, 3});
    const auto run = [&] {
        feed_ends(p, 1, from);
        feed_ends(p, 2, to);
        p.run();
    };
    CHECK_NOTHROW(run());
    to[14] = -1;
    CHECK_THROWS_WITH_AS(run(), doctest::Contains("scatter_add: index -1 at position 14 is outside [0, 5)"),
                         tg::range_error);
    from[3] = 5;
    CHECK_THROWS_WITH_AS(run(), doctest::Contains("gather: index 5 at position 3 is outside [0, 5)"), tg::range_error);
}

} // namespace messages_test
