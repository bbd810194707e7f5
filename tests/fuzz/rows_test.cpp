#include <fuzz/check.hpp>
#include <support/run_time_graph.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>

/// Every row of the table as a graph that is made at run time: the bits of eager mode in double, values, gradients, tangents and what
/// is nested of them, at all its shapes, under vmap, past the passes; and in every floating type the bits of its nodes one by one.

namespace tg = tapegraph;
using namespace tapegraph::fuzz;    // the fuzzer's names
using namespace tapegraph::testing; // the table's

namespace {

/// A row as a program of one operation, whose leaves have the row's values.
struct row_program {
    program p;
    std::vector<tg::any_tensor> leaves;
};

tg::any_tensor drawn_leaf(const row& r, std::size_t k, tg::dtype type, const extents& dims) {
    choices random(1000003 + k * 7919);
    tg::any_tensor t(type, shape_from(dims));
    for (std::int64_t i = 0; i < t.size(); ++i) {
        double v = random.between(r.domains[k].low, r.domains[k].high);
        if (std::abs(v) < r.away) v = v < 0 ? v - r.away : v + r.away;
        if (r.apart) v = (std::round(v * 512) + 0.25 * static_cast<double>(k)) / 512;
        if (r.whole || (k >= r.sources() && r.watched >= 0)) v = std::floor(v);
        if (type == tg::dtype::f64) static_cast<double*>(t.write())[i] = v;
        if (type == tg::dtype::i32) static_cast<std::int32_t*>(t.write())[i] = static_cast<std::int32_t>(v);
        if (type == tg::dtype::i64) static_cast<std::int64_t*>(t.write())[i] = static_cast<std::int64_t>(v);
        if (type == tg::dtype::boolean) static_cast<bool*>(t.write())[i] = v > 0;
    }
    return t;
}

row_program program_of(const operation& of, const row& r, const std::vector<extents>& shapes) {
    row_program made;
    instruction call{.op = of.name, .with = r.with};
    for (std::size_t k = 0; k < shapes.size(); ++k) {
        const tg::any_tensor leaf = drawn_leaf(r, k, of.types[k], shapes[k]);
        instruction c{.type = of.types[k], .dims = shapes[k]};
        c.with.whole.push_back(static_cast<std::int64_t>(k) + 1);
        if (of.types[k] == tg::dtype::f64) {
            c.op = k < r.sources() && r.derivatives > 0 ? "input" : "numbers";
            c.with.real = {r.domains[k].low, r.domains[k].high};
        } else if (of.types[k] == tg::dtype::boolean) {
            c.op = "conditions";
        } else {
            c.op = "indices";
            c.with.whole.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(r.domains[k].high)));
        }
        c.with.whole.insert(c.with.whole.end(), shapes[k].begin(), shapes[k].end());
        made.p.code.push_back(c);
        made.leaves.push_back(leaf);
        call.operands.push_back(static_cast<int>(k));
    }
    made.p.code.push_back(call);
    made.leaves.emplace_back();
    made.p.outputs = {static_cast<int>(shapes.size())};
    return made;
}

std::string text_of(const std::vector<extents>& shapes) {
    std::string text;
    for (const extents& s : shapes) text += " " + tg::to_string(shape_from(s));
    return text;
}

std::int64_t most_elements(const std::vector<extents>& shapes) {
    std::int64_t most = 0;
    for (const extents& s : shapes) most = std::max(most, count_of(s));
    return most;
}

tg::any_tensor as_type(const tg::any_tensor& x, tg::dtype type) {
    const tg::tensor<double> wide(x);
    switch (type) {
    case tg::dtype::f32: return tg::tensor<float>(tg::cast<float>(wide));
    case tg::dtype::f16: return tg::tensor<tg::half>(tg::cast<tg::half>(wide));
    case tg::dtype::bf16: return tg::tensor<tg::bfloat16>(tg::cast<tg::bfloat16>(wide));
    default: return x;
    }
}

/// Bytes, except that one NaN is like another.
std::string difference_of(const tg::any_tensor& a, const tg::any_tensor& b) {
    if (a.type() != b.type() || !(a.shape() == b.shape())) return "types or shapes differ";
    const std::size_t size = tg::size_of(a.type());
    const auto number = [&](const tg::any_tensor& x, std::int64_t i) -> double {
        switch (x.type()) {
        case tg::dtype::f64: return static_cast<const double*>(x.read())[i];
        case tg::dtype::f32: return static_cast<const float*>(x.read())[i];
        case tg::dtype::f16: return static_cast<double>(static_cast<const tg::half*>(x.read())[i]);
        case tg::dtype::bf16: return static_cast<double>(static_cast<const tg::bfloat16*>(x.read())[i]);
        default: return 0;
        }
    };
    for (std::int64_t i = 0; i < a.size(); ++i) {
        const auto at = static_cast<std::size_t>(i) * size;
        if (std::memcmp(static_cast<const char*>(a.read()) + at, static_cast<const char*>(b.read()) + at, size) == 0)
            continue;
        if (std::isnan(number(a, i)) && std::isnan(number(b, i))) continue;
        return "element " + std::to_string(i) + " is " + number_text(number(a, i)) + " instead of " +
               number_text(number(b, i));
    }
    return {};
}

/// The row in an element type, with its gradient: after the passes, planned and run by the library, the bits of its nodes one by one.
std::string check_type(const operation& of, const row& r, const std::vector<tg::any_tensor>& leaves, tg::dtype type,
                       bool symbolic) {
    std::vector<tg::any_tensor> feeds;
    std::int64_t batch = -1;
    for (std::size_t k = 0; k < of.types.size(); ++k) {
        feeds.push_back(of.types[k] == tg::dtype::f64 ? as_type(leaves[k], type) : leaves[k]);
        if (batch < 0 && feeds[k].rank() > 0 && feeds[k].shape()[0].value > 1) batch = feeds[k].shape()[0].value;
    }
    const std::size_t operands = feeds.size();
    const auto build = [&](bool symbols) {
        return [&, symbols](tg::ir::trace& t) {
            feeds.resize(operands);
            std::vector<tg::graph_node> x;
            for (const tg::any_tensor& each : feeds) {
                tg::shape dims = each.shape();
                dims.attach(&t.extents);
                if (symbols && dims.rank() > 0 && dims[0].value == batch)
                    dims.set(0, {t.extents.symbol("batch"), &t.extents});
                x.emplace_back(&t, t.input("operand", each.type(), dims));
            }
            const tg::graph_node y = of.graph(x.data(), r.with);
            t.outputs.push_back({"value", y.id()});
            if (t.error.what != nullptr || r.derivatives < 1 || y.type() != type) return;
            tg::list<int> sources;
            for (std::size_t k = 0; k < r.sources(); ++k) sources.push_back(x[k].id());
            const tg::graph_node total = tg::eval(sum(y * y));
            const tg::list<int> found = tg::ir::gradient(t, total.id(), sources);
            for (int k = 0; k < found.size(); ++k)
                t.outputs.push_back({"gradient", found[k] >= 0 ? found[k] : tg::ir::detail::zeros_like(t, sources[k])});
        };
    };
    tg::ir::trace t;
    build(false)(t);
    if (t.error.what != nullptr) return std::string("refused: ") + t.error.what;
    const std::vector<tg::any_tensor> want = interpret(t, feeds);
    run_time_graph graph(build(symbolic));
    const std::vector<tg::any_tensor> got = graph.run(feeds);
    if (got.size() != want.size()) return "numbers of results";
    for (std::size_t k = 0; k < got.size(); ++k)
        if (const std::string text = difference_of(got[k], want[k]); !text.empty())
            return "result " + std::to_string(k) + ": " + text;
    return {};
}

struct counted {
    std::int64_t rows = 0, graphs = 0, symbolic = 0;
    std::map<std::string, int> refused;
};

void check_types(const operation& of, const row& r, const std::vector<extents>& shapes,
                 const std::vector<tg::any_tensor>& leaves, counted& all) {
    for (const tg::dtype type : of.graph_types)
        for (const bool symbolic : {false, true}) {
            std::string text;
            try {
                text = check_type(of, r, leaves, type, symbolic);
                ++all.graphs;
                all.symbolic += symbolic;
            } catch (const tg::error& e) { // extents that must be numbers; a kernel that this type has not
                if (!symbolic) ++all.refused[std::string(tg::name_of(type)) + ": " + e.what()];
            }
            if (!text.empty())
                FAIL_CHECK(r.name << text_of(shapes) << " of " << std::string(tg::name_of(type))
                                  << std::string(symbolic ? ", symbolic: " : ": ") << text);
        }
}

/// The awkward values of a row, more of them than a vector register holds.
void check_awkward(const operation& of, row r, counted& all) {
    if (r.awkward.empty()) return;
    constexpr std::int64_t length = 67;
    r.derivatives = 0;
    std::vector<tg::any_tensor> leaves;
    for (std::size_t k = 0; k < of.types.size(); ++k) {
        if (of.types[k] != tg::dtype::f64) return;
        auto t = tg::tensor<double>::uninitialized({length});
        for (std::int64_t i = 0; i < length; ++i)
            t.mutable_data()[i] = r.awkward[static_cast<std::size_t>(i) % r.awkward.size()][k];
        leaves.push_back(t);
    }
    check_types(of, r, std::vector<extents>(leaves.size(), extents{length}), leaves, all);
}

void check_rows(std::vector<operation> operations) {
    counted all;
    statistics counts;
    for (operation of : operations) {
        const std::vector<row> rows = rows_of({of});
        const bool real_operand = std::find(of.types.begin(), of.types.end(), tg::dtype::f64) != of.types.end();
        of.name = "row of " + of.name;
        of.weight = 0;
        add_operation(of);
        for (const row& r : rows) {
            check_awkward(of, r, all);
            for (const std::vector<extents>& shapes : r.shapes) {
                ++all.rows;
                row_program made = program_of(of, r, shapes);
                check_options options;
                options.second = r.derivatives > 1 && most_elements(shapes) <= 2000;
                options.twice = r.forward_twice;
                options.mapped = most_elements(shapes) <= 2000;
                for (std::size_t k = 0; k < shapes.size(); ++k)
                    if (shapes[k].size() >= tg::max_rank || of.types[k] == tg::dtype::i64) options.mapped = false;
                if (const finding f = check_modes(made.p, made.leaves, counts, options); !f.ok())
                    FAIL_CHECK(r.name << text_of(shapes) << ", " << f.what << ": " << f.text);
                if (real_operand && most_elements(shapes) <= 40000) check_types(of, r, shapes, made.leaves, all);
            }
        }
    }
    for (const auto& [text, times] : all.refused) FAIL_CHECK(times << " times " << text);
    CHECK(all.symbolic > 0);
    MESSAGE(all.rows << " rows at their shapes, " << all.graphs << " graphs, " << all.symbolic
                     << " with a symbolic batch, " << counts.mapped << " under vmap");
}

} // namespace

#define TG_CHECK_FILE(file, text, drawn)                                                                               \
    TEST_CASE("graphs of rows: " text) { check_rows(file##_operations()); }
TG_OPERATION_FILES(TG_CHECK_FILE)
#undef TG_CHECK_FILE
