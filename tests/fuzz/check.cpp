#include <fuzz/check.hpp>
#include <fuzz/mapped.hpp>
#include <support/run_time_graph.hpp>

#include <tapegraph/graph/passes/epilogue.hpp>
#include <tapegraph/graph/passes/messages.hpp>
#include <tapegraph/graph/passes/slices.hpp>
#include <tapegraph/graph/passes/snapshot_variables.hpp>
#include <tapegraph/graph/passes/verify.hpp>
#include <tapegraph/ir/eliminate.hpp>
#include <tapegraph/ir/fold_numbers.hpp>
#include <tapegraph/ir/simplify.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tapegraph::fuzz {

namespace {

double element(const any_tensor& x, std::int64_t i) {
    if (x.type() == dtype::f64) return static_cast<const double*>(x.read())[i];
    if (x.type() == dtype::i32) return static_cast<const std::int32_t*>(x.read())[i];
    return static_cast<const bool*>(x.read())[i] ? 1 : 0;
}

/// Where two lists of tensors differ by more than `tolerance` times the largest magnitude; 0: in a single bit, except
/// that one NaN is like another.
std::string compare(const char* what, const std::vector<any_tensor>& got, const std::vector<any_tensor>& want,
                    double tolerance) {
    if (got.size() != want.size()) return std::string(what) + ": numbers of results differ";
    for (std::size_t k = 0; k < got.size(); ++k) {
        const any_tensor &a = got[k], &b = want[k];
        const std::string name = std::string(what) + " " + std::to_string(k);
        if (a.type() != b.type()) return name + ": " + name_of(a.type()) + " instead of " + name_of(b.type());
        if (!(a.shape() == b.shape()))
            return name + ": " + to_string(a.shape()) + " instead of " + to_string(b.shape());
        double scale = 1;
        for (std::int64_t i = 0; i < b.size(); ++i)
            if (std::isfinite(element(b, i))) scale = std::max(scale, std::abs(element(b, i)));
        for (std::int64_t i = 0; i < b.size(); ++i) {
            const double x = element(a, i), y = element(b, i);
            const bool same = std::memcmp(&x, &y, sizeof x) == 0 || (std::isnan(x) && std::isnan(y));
            if (same || (tolerance > 0 && std::abs(x - y) <= tolerance * scale)) continue;
            return name + ": element " + std::to_string(i) + " is " + number_text(x) + " instead of " + number_text(y);
        }
    }
    return {};
}

std::string compare(const results& got, const results& want, double gradient_tolerance, double tangent_tolerance,
                    double second_tolerance) {
    std::string text = compare("output", got.outputs, want.outputs, 0);
    if (text.empty()) text = compare("gradient by input", got.gradients, want.gradients, gradient_tolerance);
    if (text.empty()) text = compare("tangent of real output", got.tangents, want.tangents, tangent_tolerance);
    if (!text.empty() || want.second.empty()) return text;
    text = compare("second derivative by input", got.second, want.second, second_tolerance);
    if (text.empty()) text = compare("forward over reverse by input", got.products, want.products, second_tolerance);
    if (text.empty()) text = compare("reverse over forward by input", got.mixed, want.mixed, second_tolerance);
    return text;
}

// Each instruction by itself on the operands it was given, so that errors do not add up. The kernels are good to a few
// ulp, their sums have at most some thousand terms of the operands' size: 1e-12 of that is room enough, and tells any
// wrong element.
finding check_values(const program& p, const std::vector<any_tensor>& values) {
    for (std::size_t i = 0; i < p.code.size(); ++i) {
        const instruction& c = p.code[i];
        if (c.leaf() || !operation_named(c.op).reference) continue;
        std::vector<array> x;
        real scale = 1;
        for (const int operand : c.operands) x.push_back(plain_values(values[static_cast<std::size_t>(operand)]));
        for (const array& a : x)
            for (const real v : a.values) scale = std::max(scale, std::abs(v));
        const array want = operation_named(c.op).reference(x, c.with), got = plain_values(values[i]);
        const std::string name = "v" + std::to_string(i) + " (" + c.op + ")";
        if (want.dims != got.dims)
            return {"value", name + ": extents " + to_string(testing::shape_from(got.dims)) + " instead of " +
                                 to_string(testing::shape_from(want.dims))};
        for (std::int64_t k = 0; k < want.size(); ++k) {
            const bool truth = c.type == dtype::boolean;
            const real apart = std::abs(got[k] - want[k]), largest = std::max(scale * scale, std::abs(want[k]));
            if (truth ? got[k] == want[k] : apart <= 1e-12L * largest) continue;
            return {"value", name + ": element " + std::to_string(k) + " is " +
                                 number_text(static_cast<double>(got[k])) + " instead of " +
                                 number_text(static_cast<double>(want[k]))};
        }
    }
    return {};
}

std::string refused(const ir::trace& t) {
    return t.error.what == nullptr ? std::string() : std::string(t.error.operation) + ": " + t.error.what;
}

std::string verified(ir::trace& t, const char* after) {
    const ir::finding f = verify(t);
    return f.ok() ? std::string()
                  : std::string(after) + ": " + f.what + " (node " + std::to_string(f.at) +
                        (f.at >= 0 && f.at < t.nodes.size() ? ", " + std::string(t.nodes[f.at].op->name) : "") + ")";
}

/// All passes in the order of compile_program, the verifier after each.
std::string run_passes(ir::trace& t, const check_options& options) {
    using step = void (*)(ir::trace&);
    const std::pair<const char*, step> passes[]{{"simplify", [](ir::trace& x) { simplify(x); }},
                                                {"numbers", [](ir::trace& x) { fold_numbers(x); }},
                                                {"common subexpressions", &ir::eliminate_common_subexpressions},
                                                {"dead nodes", &ir::eliminate_dead_nodes},
                                                {"epilogues", &ir::fuse_epilogues},
                                                {"messages", [](ir::trace& x) { fuse_messages(x); }},
                                                {"sums of pads", [](ir::trace& x) { join_pads(x); }},
                                                {"dead nodes again", &ir::eliminate_dead_nodes},
                                                {"views of slices", [](ir::trace& x) { view_slices(x); }},
                                                {"old values", &ir::snapshot_variables}};
    for (const auto& [name, pass] : passes) {
        pass(t);
        if (std::string text = verified(t, name); !text.empty()) return text;
    }
    if (options.after_passes == nullptr) return {};
    options.after_passes(t);
    return verified(t, "a test's own pass");
}

// Two equal elements of an operand of max or min each receive the derivative: by convention, not by definition.
bool has_ties(const any_tensor& x) {
    std::vector<double> sorted;
    for (std::int64_t i = 0; i < x.size(); ++i) sorted.push_back(element(x, i));
    std::sort(sorted.begin(), sorted.end());
    return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

bool differentiable(const program& p, const std::vector<any_tensor>& values) {
    for (const instruction& c : p.code) {
        if (c.leaf()) continue;
        const operation& op = operation_named(c.op);
        if (!op.smooth) return false;
        if (op.splits_ties && has_ties(values[static_cast<std::size_t>(c.operands[0])])) return false;
    }
    return true;
}

// Whether derivatives pass in float, which rounds them in other places when sums have another order.
bool rounds(const program& p) {
    return std::any_of(p.code.begin(), p.code.end(),
                       [](const instruction& c) { return !c.leaf() && operation_named(c.op).rounds; });
}

// Sums of the same products in two orders; they may cancel.
struct product_sum {
    double value = 0, scale = 0;
};
product_sum dot(const std::vector<any_tensor>& a, const std::vector<any_tensor>& b) {
    product_sum sum;
    for (std::size_t k = 0; k < a.size(); ++k)
        for (std::int64_t i = 0; i < a[k].size(); ++i) {
            const double term = element(a[k], i) * element(b[k], i);
            sum.value += term;
            sum.scale += std::abs(term);
        }
    return sum;
}

// What forward mode says of a program whose outputs are y(x), with the weights u, the gradient g = J'u and directions v, w.
finding check_forward(const program& p, const std::vector<any_tensor>& leaves, const loss_parts& loss, const results& r,
                      bool twice, statistics& counts) {
    std::vector<any_tensor> v, w;
    for (const int source : sources_of(p)) {
        const any_tensor& x = leaves[static_cast<std::size_t>(source)];
        v.push_back(direction(x, v.size()));
        w.push_back(second_direction(x, w.size()));
    }
    const auto apart = [](const char* what, product_sum a, product_sum b, double tolerance) {
        if (std::abs(a.value - b.value) <= tolerance * (1 + a.scale + b.scale)) return std::string();
        if (std::isnan(a.value) && std::isnan(b.value)) return std::string(); // one NaN is like another
        if (std::isnan(a.value) && b.scale == 0) return std::string();        // the mean of nothing
        return std::string(what) + ": " + number_text(a.value) + " and " + number_text(b.value);
    };
    const double first = rounds(p) ? 1e-6 : 1e-9, further = rounds(p) ? 1e-5 : 1e-8;
    ++counts.tangents;
    std::string text = apart("u (J v) and (J'u) v", dot(loss.weights, r.tangents), dot(r.gradients, v), first);
    if (text.empty() && !r.second.empty()) { // r.second is (d(g v)/dx), of the same products in other orders
        const product_sum along = dot(r.second, w);
        text = apart("v (dg/dx w) and (d(g v)/dx) w", dot(v, r.products), along, further);
        if (text.empty()) text = compare("d(u (J v))/dx and d(g v)/dx, input", r.mixed, r.second, further);
        if (text.empty() && twice) text = apart("d(u (J v))/dx w and d(g v)/dx w", {r.twice, 0}, along, further);
    }
    return text.empty() ? finding{} : finding{"forward", text};
}

// The derivative along a random direction. Slopes at h and h/2 give one of fourth order, 1e-11 |f| of rounding and
// h^4 f'''''; their distance from each other bounds what a large third derivative does. A kink between the points parts
// the two slopes; one at the point itself shows in second differences, which fall by two instead of four when h is
// halved.
struct derivative {
    const char* what;
    double value;
};
template <class F>
finding check_slope(const F& at, std::initializer_list<derivative> exact, double scale, std::int64_t& taken,
                    std::int64_t& kinks) {
    constexpr double h = 2e-5, tolerance = 1e-7;
    const double middle = at(0), high = at(h), low = at(-h), near_high = at(h / 2), near_low = at(-h / 2);
    const double wide = (high - low) / (2 * h), near = (near_high - near_low) / h;
    const double bend = high + low - 2 * middle, half_bend = near_high + near_low - 2 * middle;
    scale += 1 + std::abs(middle);
    const double kink = std::abs(4 * half_bend - bend) / h;
    if (!(kink <= 0.2 * tolerance * scale) || !(std::abs(wide - near) <= 1e-4 * scale)) {
        ++kinks;
        return {};
    }
    ++taken;
    const double difference = (4 * near - wide) / 3;
    for (const derivative& each : exact)
        if (!(std::abs(difference - each.value) <= tolerance * scale + std::abs(wide - near)))
            return {"differences", std::string(each.what) + " is " + number_text(each.value) + ", finite difference " +
                                       number_text(difference) + ", magnitudes " + number_text(scale)};
    return {};
}

finding check_differences(program& p, const std::vector<any_tensor>& leaves, const loss_parts& loss, const results& r,
                          statistics& counts) {
    const std::vector<int> sources = sources_of(p);
    const auto moved = [&](any_tensor (*along)(const any_tensor&, std::size_t), double distance) {
        std::vector<any_tensor> all = leaves;
        for (std::size_t k = 0; k < sources.size(); ++k) {
            tensor<double> x(all[static_cast<std::size_t>(sources[k])]);
            const tensor<double> v(along(x, k));
            for (std::int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] += distance * v.data()[i];
            all[static_cast<std::size_t>(sources[k])] = x;
        }
        return all;
    };
    const auto along = [&](any_tensor (*which)(const any_tensor&, std::size_t)) {
        std::vector<any_tensor> all;
        for (const int source : sources) all.push_back(which(leaves[static_cast<std::size_t>(source)], all.size()));
        return all;
    };
    if (sources.empty()) return {};
    const product_sum reverse = dot(r.gradients, along(&direction)), forward = dot(loss.weights, r.tangents);
    const std::int64_t kinks = counts.kinks;
    finding found = check_slope([&](double h) { return loss_at(p, moved(&direction, h), loss); },
                                {{"derivative along a direction", reverse.value}, {"tangent", forward.value}},
                                reverse.scale, counts.differences, counts.kinks);
    if (!found.ok() || counts.kinks != kinks || r.second.empty()) return found;
    const product_sum twice = dot(r.second, along(&second_direction));
    return check_slope([&](double h) { return slope_at(p, moved(&second_direction, h), loss); },
                       {{"second derivative along two directions", twice.value}}, twice.scale,
                       counts.second_differences, counts.second_kinks);
}

finding check_traces(program& p, const std::vector<any_tensor>& leaves, const loss_parts& loss, const results& tape,
                     statistics& counts, const check_options& options) {
    const bool any_inner = std::any_of(p.code.begin(), p.code.end(), [](const instruction& c) { return c.inner; });
    results unoptimised;
    for (const bool grouped : {false, true}) {
        if (grouped && !any_inner) continue;
        ir::trace t;
        const std::vector<any_tensor> feeds =
            trace_program(t, p, leaves, loss, {.grouped = grouped, .second = options.second});
        const char* const name = grouped ? "formulas" : "trace";
        if (const std::string text = refused(t); !text.empty()) return {name, "refused: " + text};
        if (const std::string text = verified(t, "trace"); !text.empty()) return {"verifier", text};
        unoptimised = interpret(t, feeds, p);
        counts.nodes += t.nodes.size();
        // Grouped, an inner value that two formulas use sends its adjoints on separately instead of as a sum. Nested
        // tapes execute second derivatives in yet another order.
        const std::string text = compare(unoptimised, tape, grouped ? 1e-9 : 0,
                                         !grouped    ? 0
                                         : rounds(p) ? 1e-6
                                                     : 1e-9,
                                         rounds(p) ? 1e-5 : 1e-8);
        if (!text.empty()) return {name, text};
    }
    for (const bool fuse : {true, false}) {
        ir::trace t;
        const std::vector<any_tensor> feeds =
            trace_program(t, p, leaves, loss, {.grouped = any_inner, .second = options.second});
        if (fuse)
            if (const std::string text = run_passes(t, options); !text.empty()) return {"verifier", text};
        for (const ir::entry& e : t.nodes) {
            counts.epilogues += e.op == &ir::descriptor_of<convolution_bias_op<false>> ||
                                e.op == &ir::descriptor_of<convolution_bias_op<true>>;
            counts.product_epilogues +=
                e.op == &ir::descriptor_of<matmul_bias_op<false>> || e.op == &ir::descriptor_of<matmul_bias_op<true>>;
        }
        ir::schedule s = make_schedule(t, fuse);
        if (const ir::finding f = verify(t, s); !f.ok()) return {"verifier", std::string("schedule: ") + f.what};
        counts.steps += s.steps.size();
        const std::string text = compare(run_schedule(t, s, feeds, p), unoptimised, 0, 0, 0);
        if (!text.empty()) return {fuse ? "passes" : "unfused", text};
    }
    std::vector<any_tensor> feeds;
    testing::run_time_graph library([&](ir::trace& made) {
        feeds = trace_program(made, p, leaves, loss, {.grouped = any_inner, .second = options.second});
    });
    if (const std::string text = compare(sorted_out(library.run(feeds), p), unoptimised, 0, 0, 0); !text.empty())
        return {"library", text};
    ir::trace t;
    feeds = trace_program(t, p, leaves, loss, {.grouped = any_inner, .second = options.second, .symbolic = true});
    if (t.error.what != nullptr || t.extents.atoms.empty()) return {}; // some need numbers: slices, reshapes, ...
    if (const std::string text = run_passes(t, options); !text.empty()) return {"verifier", "symbolic: " + text};
    ir::schedule s = make_schedule(t);
    if (const ir::finding f = verify(t, s); !f.ok()) return {"verifier", std::string("symbolic schedule: ") + f.what};
    try {
        // Where a number and a symbol stand for one extent, second derivatives may add in another order.
        if (const std::string text = compare(run_schedule(t, s, feeds, p), unoptimised, 0, 0, 1e-12); !text.empty())
            return {"symbolic", text};
        ++counts.symbolic;
    } catch (const shape_error&) { // a symbol was taken for a number above one, and stands for one here
    }
    return {};
}

// All but what the values are and what finite differences say.
finding check_modes(program& p, const std::vector<any_tensor>& leaves, const std::vector<any_tensor>& values,
                    const loss_parts& loss, results& tape, statistics& counts, const check_options& options) {
    tape = run_on_tape(p, leaves, loss);
    if (options.second && !loss.outputs.empty() && !tape.gradients.empty())
        tape.second = run_on_nested_tapes(p, leaves, loss);
    if (options.mapped)
        if (const std::string text = check_mapped(p, values, counts.mapped); !text.empty()) return {"vmap", text};
    run_forward(p, leaves, loss, {options.second, options.twice}, tape);
    if (!tape.tangents.empty())
        if (finding f = check_forward(p, leaves, loss, tape, options.twice, counts); !f.ok()) return f;
    return check_traces(p, leaves, loss, tape, counts, options);
}

template <class F>
finding errors_found(const F& f) {
    try {
        return f();
    } catch (const unsuitable&) {
        throw;
    } catch (const error& e) {
        return {"error", e.what()};
    }
}

} // namespace

finding check(program& p, statistics& counts, const check_options& options) {
    const std::vector<any_tensor> leaves = leaves_of(p);
    return errors_found([&]() -> finding {
        const std::vector<any_tensor> values = run_eagerly(p, leaves, true);
        ++counts.programs;
        counts.instructions += p.size();
        if (finding f = check_values(p, values); !f.ok()) return f;
        const loss_parts loss = loss_of(p, values);
        results tape;
        if (finding f = check_modes(p, leaves, values, loss, tape, counts, options); !f.ok()) return f;
        if (!loss.outputs.empty() && differentiable(p, values)) return check_differences(p, leaves, loss, tape, counts);
        return {};
    });
}

finding check_modes(program& p, const std::vector<any_tensor>& leaves, statistics& counts,
                    const check_options& options) {
    return errors_found([&]() -> finding {
        const std::vector<any_tensor> values = run_eagerly(p, leaves, false);
        ++counts.programs;
        results tape;
        return check_modes(p, leaves, values, loss_of(p, values), tape, counts, options);
    });
}

} // namespace tapegraph::fuzz
