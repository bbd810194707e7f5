#include <fuzz/evaluate.hpp>

#include <tapegraph/eager/derivatives.hpp>

#include <cmath>

namespace tapegraph::fuzz {

namespace {

extents dims_of(const attributes& with, std::size_t from) {
    return extents(with.whole.begin() + static_cast<std::ptrdiff_t>(from), with.whole.end());
}

any_tensor leaf_value(const instruction& c) {
    const auto seed = static_cast<std::uint64_t>(c.with.whole.empty() ? 0 : c.with.whole[0]);
    choices random(seed);
    if (c.op == "constant") return tensor<double>(c.with.real[0]);
    if (c.op == "input" || c.op == "numbers") {
        auto t = tensor<double>::uninitialized(testing::shape_from(dims_of(c.with, 1)));
        for (std::int64_t i = 0; i < t.size(); ++i)
            t.mutable_data()[i] = random.between(c.with.real[0], c.with.real[1]);
        return t;
    }
    if (c.op == "conditions") {
        auto t = tensor<bool>::uninitialized(testing::shape_from(dims_of(c.with, 1)));
        for (std::int64_t i = 0; i < t.size(); ++i) t.mutable_data()[i] = random.chance(0.5);
        return t;
    }
    if (c.op == "indices") {
        auto t = tensor<std::int32_t>::uninitialized(testing::shape_from(dims_of(c.with, 2)));
        if (c.with.whole[1] < 1) throw unsuitable("indices below " + std::to_string(c.with.whole[1]));
        for (std::int64_t i = 0; i < t.size(); ++i)
            t.mutable_data()[i] = static_cast<std::int32_t>(random.whole(0, c.with.whole[1] - 1));
        return t;
    }
    throw argument_error("'" + c.op + "' is not a leaf");
}

} // namespace

std::vector<any_tensor> leaves_of(const program& p) {
    std::vector<any_tensor> leaves;
    for (const instruction& c : p.code) leaves.push_back(c.leaf() ? leaf_value(c) : any_tensor());
    return leaves;
}

void check_domains(const operation& op, const instruction& c, const std::vector<any_tensor>& operands) {
    if (operands.size() != op.types.size()) throw unsuitable(op.name + ": number of operands");
    std::vector<extents> dims;
    for (const any_tensor& x : operands) dims.push_back(testing::extents_of(x.shape()));
    for (std::size_t k = 0; k < operands.size(); ++k) {
        const any_tensor& x = operands[k];
        if (x.type() != op.types[k]) throw unsuitable(op.name + ": element type of an operand");
        for (std::int64_t i = 0; x.type() == dtype::f64 && i < x.size(); ++i) {
            const double v = static_cast<const double*>(x.read())[i];
            if (!(v >= op.domains[k].low && v <= op.domains[k].high)) throw unsuitable(op.name + ": domain");
        }
        const std::int64_t limit =
            x.type() == dtype::i32 && op.index_limit ? op.index_limit(dims, c.with) : std::int64_t{1} << 31;
        for (std::int64_t i = 0; x.type() == dtype::i32 && i < x.size(); ++i)
            if (static_cast<const std::int32_t*>(x.read())[i] >= limit) throw unsuitable(op.name + ": index");
    }
    if (!op.accepts) return;
    std::vector<array> plain;
    for (const any_tensor& x : operands) plain.push_back(plain_values(x));
    if (!op.accepts(plain, c.with)) throw unsuitable(op.name + ": values");
}

any_tensor run_instruction(const instruction& c, const any_tensor* operands) {
    return operation_named(c.op).eager(operands, c.with);
}

std::vector<any_tensor> run_eagerly(program& p, const std::vector<any_tensor>& leaves, bool checked) {
    constexpr double largest = 1e4;
    std::vector<any_tensor> values;
    for (std::size_t i = 0; i < p.code.size(); ++i) {
        instruction& c = p.code[i];
        if (c.leaf()) {
            values.push_back(leaves[i]);
        } else {
            std::vector<any_tensor> operands;
            for (int operand : c.operands) operands.push_back(values[static_cast<std::size_t>(operand)]);
            if (checked) check_domains(operation_named(c.op), c, operands);
            values.push_back(run_instruction(c, operands.data()));
        }
        if (!checked) continue;
        const any_tensor& v = values.back();
        c.type = v.type();
        c.dims = testing::extents_of(v.shape());
        for (std::int64_t k = 0; v.type() == dtype::f64 && k < v.size(); ++k)
            if (!(std::abs(static_cast<const double*>(v.read())[k]) <= largest))
                throw unsuitable("a value is too large");
    }
    return values;
}

std::vector<int> sources_of(const program& p) {
    std::vector<int> sources;
    for (int i = 0; i < p.size(); ++i)
        if (p.code[static_cast<std::size_t>(i)].op == "input") sources.push_back(i);
    return sources;
}

loss_parts loss_of(const program& p, const std::vector<any_tensor>& values) {
    loss_parts parts;
    for (const int output : p.outputs) {
        const any_tensor& y = values[static_cast<std::size_t>(output)];
        if (y.type() != dtype::f64) continue;
        parts.outputs.push_back(output);
        parts.weights.push_back(testing::weights_like(tensor<double>(y), 5 + parts.outputs.size()));
    }
    return parts;
}

namespace {

tensor<double> eager_loss(const std::vector<any_tensor>& values, const loss_parts& loss) {
    std::vector<tensor<double>> y, w;
    for (std::size_t k = 0; k < loss.outputs.size(); ++k) {
        y.emplace_back(values[static_cast<std::size_t>(loss.outputs[k])]);
        w.emplace_back(loss.weights[k]);
    }
    return weighted_sum(y, w);
}

} // namespace

results run_on_tape(program& p, const std::vector<any_tensor>& leaves, const loss_parts& loss) {
    results r;
    std::vector<any_tensor> watched = leaves;
    gradient_tape tape;
    for (const int source : sources_of(p)) {
        tensor<double> x(watched[static_cast<std::size_t>(source)]);
        tape.watch(x);
        watched[static_cast<std::size_t>(source)] = x;
    }
    const std::vector<any_tensor> values = run_eagerly(p, watched, false);
    for (const int output : p.outputs) r.outputs.push_back(values[static_cast<std::size_t>(output)]);
    if (loss.outputs.empty()) return r;
    const tensor<double> total = eager_loss(values, loss);
    r.loss = total.item();
    std::vector<any_tensor> sources;
    for (const int source : sources_of(p)) sources.push_back(watched[static_cast<std::size_t>(source)]);
    r.gradients = tape.gradient(total, sources);
    return r;
}

any_tensor direction(const any_tensor& gradient, std::size_t k) {
    return testing::weights_like(tensor<double>(gradient), 31 + k);
}

any_tensor second_direction(const any_tensor& source, std::size_t k) {
    return testing::weights_like(tensor<double>(source), 131 + k);
}

std::vector<any_tensor> run_on_nested_tapes(program& p, const std::vector<any_tensor>& leaves, const loss_parts& loss) {
    std::vector<any_tensor> watched = leaves, sources, first;
    gradient_tape outer;
    for (const int source : sources_of(p)) {
        tensor<double> x(watched[static_cast<std::size_t>(source)]);
        outer.watch(x);
        watched[static_cast<std::size_t>(source)] = x;
        sources.push_back(x);
    }
    {
        gradient_tape inner;
        first = inner.gradient(eager_loss(run_eagerly(p, watched, false), loss), sources);
    }
    std::vector<tensor<double>> g, u;
    for (std::size_t k = 0; k < first.size(); ++k) {
        g.emplace_back(first[k]);
        u.emplace_back(direction(first[k], k));
    }
    return outer.gradient(weighted_sum(g, u), sources);
}

namespace {

using handles = std::vector<any_tensor>;

// A function of the sources, recorded so that sweeps may go either way.
class recorded_program : public tapegraph::detail::recorded_function<any_tensor> {
public:
    template <class F>
    recorded_program(const handles& sources, const F& f) {
        handles x;
        for (const any_tensor& each : sources) x.push_back(own(tensor<double>(each)));
        first_ = tapegraph::detail::tape_storage::instance().length();
        results_ = f(x);
        tape_.stop_recording();
        wish_.end();
        end_ = tapegraph::detail::tape_storage::instance().length();
    }
    const handles& results() const { return results_; }
};

tensor<double> sum_of_products(const handles& a, const handles& b) {
    std::vector<tensor<double>> x, y;
    for (std::size_t k = 0; k < a.size(); ++k) {
        x.emplace_back(a[k]);
        y.emplace_back(b[k]);
    }
    return weighted_sum(x, y);
}

} // namespace

void run_forward(program& p, const std::vector<any_tensor>& leaves, const loss_parts& loss, forward_options wanted,
                 results& r) {
    handles at, along, further;
    for (const int source : sources_of(p)) {
        at.push_back(leaves[static_cast<std::size_t>(source)]);
        along.push_back(direction(at.back(), along.size()));
        further.push_back(second_direction(at.back(), further.size()));
    }
    if (loss.outputs.empty() || at.empty()) return;
    const auto moved = [&](const handles& x) {
        std::vector<any_tensor> all = leaves;
        const std::vector<int> sources = sources_of(p);
        for (std::size_t k = 0; k < sources.size(); ++k) all[static_cast<std::size_t>(sources[k])] = x[k];
        return all;
    };
    const auto outputs = [&](const handles& x) {
        const std::vector<any_tensor> values = run_eagerly(p, moved(x), false);
        handles y;
        for (const int output : loss.outputs) y.push_back(values[static_cast<std::size_t>(output)]);
        return y;
    };
    r.tangents = recorded_program(at, outputs).push(along);
    if (!wanted.second) return;
    r.products = recorded_program(at, [&](const handles& x) {
                     gradient_tape inner;
                     handles watched = x;
                     for (any_tensor& each : watched) {
                         tensor<double> source(each);
                         inner.watch(source);
                         each = source;
                     }
                     return inner.gradient(eager_loss(run_eagerly(p, moved(watched), false), loss), watched);
                 }).push(further);
    recorded_program slope(at, [&](const handles& x) {
        const handles tangents = recorded_program(x, outputs).push(along);
        return handles{sum_of_products(tangents, loss.weights)};
    });
    r.mixed = slope.pull({tensor<double>(1.0)});
    if (wanted.twice) r.twice = tensor<double>(slope.push(further)[0]).item();
}

double slope_at(program& p, const std::vector<any_tensor>& leaves, const loss_parts& loss) {
    const results r = run_on_tape(p, leaves, loss);
    handles along;
    for (const any_tensor& g : r.gradients) along.push_back(direction(g, along.size()));
    return sum_of_products(r.gradients, along).item();
}

double loss_at(program& p, const std::vector<any_tensor>& leaves, const loss_parts& loss) {
    return eager_loss(run_eagerly(p, leaves, false), loss).item();
}

} // namespace tapegraph::fuzz
