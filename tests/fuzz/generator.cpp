#include <fuzz/generator.hpp>

#include <fuzz/evaluate.hpp>

#include <algorithm>
#include <cmath>

namespace tapegraph::fuzz {

namespace {

struct span {
    double low = 0, high = 0;
};

span span_of(const any_tensor& v) {
    span s{INFINITY, -INFINITY};
    const auto widen = [&](double x) { s = {std::min(s.low, x), std::max(s.high, x)}; };
    for (std::int64_t i = 0; i < v.size(); ++i) {
        if (v.type() == dtype::f64) widen(static_cast<const double*>(v.read())[i]);
        if (v.type() == dtype::i32) widen(static_cast<const std::int32_t*>(v.read())[i]);
    }
    return s;
}

class generator {
public:
    generator(std::uint64_t seed, const generator_options& options) : random_(seed), options_(options) {
        if (random_.chance(0.04)) options_.most_elements *= 10;
        for (const operation& op : all_operations()) total_weight_ += op.weight;
    }

    program run() {
        for (std::int64_t inputs = random_.whole(1, 3); inputs > 0; --inputs) add_input(random_dims(), {});
        if (random_.chance(0.3)) add({"constant", {}, {{}, {random_.pick(std::vector<double>{0, 1, -1, 2, 0.3})}}});
        const std::int64_t wanted = random_.whole(1, random_.chance(0.5) ? 4 : options_.most_instructions);
        bool has_required = options_.only.empty();
        int made = 0;
        for (int attempt = 0; attempt < 40 * wanted && made < wanted; ++attempt)
            made += append(draw_operation()) ? 1 : 0;
        for (int attempt = 0; attempt < 2000 && !has_required; ++attempt)
            has_required = append(operation_named(options_.only));
        choose_outputs();
        mark_inner();
        return program_;
    }

private:
    const operation& draw_operation() {
        double at = random_.between(0, total_weight_);
        for (const operation& op : all_operations())
            if ((at -= op.weight) < 0) return op;
        return all_operations().front();
    }

    extents random_dims() {
        static const std::vector<std::int64_t> usual{1, 1, 2, 2, 3, 3, 4, 5, 6, 7};
        extents dims;
        for (std::int64_t rank = random_.whole(0, 5); rank > 0; --rank)
            dims.push_back(random_.chance(0.02) ? 0 : random_.pick(usual));
        if (options_.most_elements > 1000 && !dims.empty() && random_.chance(0.5))
            dims.back() = random_.whole(400, 1100);
        while (testing::count_of(dims) > options_.most_elements) {
            auto& largest = *std::max_element(dims.begin(), dims.end());
            largest = (largest + 1) / 2;
        }
        return dims;
    }

    int add(instruction c) {
        program one = program_;
        one.code.push_back(std::move(c));
        const any_tensor value = leaves_of({{one.code.back()}, {}})[0];
        one.code.back().type = value.type();
        one.code.back().dims = testing::extents_of(value.shape());
        return keep(one.code.back(), value);
    }
    int keep(const instruction& c, const any_tensor& value) {
        program_.code.push_back(c);
        values_.push_back(value);
        spans_.push_back(span_of(value));
        return program_.size() - 1;
    }

    int add_input(const extents& dims, domain where) {
        attributes with{{random_.whole(1, 1 << 30)}, {}};
        with.whole.insert(with.whole.end(), dims.begin(), dims.end());
        double low = std::max(where.low, -2.0), high = std::min(where.high, 2.0);
        if (low >= high) low = where.low, high = where.high;
        with.real = {low, high};
        return add({"input", {}, with});
    }

    int add_leaf(dtype type, const extents& dims, domain where, std::int64_t limit) {
        if (type == dtype::f64 && dims.empty() && where.low <= 1 && where.high >= 2 && random_.chance(0.5))
            return add({"constant", {}, {{}, {random_.pick(std::vector<double>{1, 2, 1.5})}}});
        if (type == dtype::f64) return add_input(dims, where);
        attributes with{{random_.whole(1, 1 << 30)}, {}};
        if (type == dtype::i32) with.whole.push_back(limit);
        with.whole.insert(with.whole.end(), dims.begin(), dims.end());
        return add({type == dtype::i32 ? "indices" : "conditions", {}, with});
    }

    bool valid(int value, dtype type, domain where, std::int64_t limit) const {
        const instruction& c = program_.code[static_cast<std::size_t>(value)];
        if (c.type != type) return false;
        const span s = spans_[static_cast<std::size_t>(value)];
        if (type == dtype::f64) return s.low >= where.low && s.high <= where.high;
        return type != dtype::i32 || s.high < static_cast<double>(limit);
    }

    // An existing value, more often a late one; -1 if none was found in a few tries.
    template <class Accept>
    int existing(const Accept& accept) {
        for (int attempt = 0; attempt < 8; ++attempt) {
            const int last = program_.size() - 1;
            const int value = static_cast<int>(std::max(random_.whole(0, last), random_.whole(0, last)));
            if (accept(value)) return value;
        }
        return -1;
    }

    // Extents that broadcast with x, some axes 1, some in front dropped or added.
    extents broadcast_partner(const extents& x) {
        extents dims = x;
        const bool plain = random_.chance(0.4);
        for (std::int64_t& d : dims) {
            if (!plain && random_.chance(0.25))
                d = 1;
            else if (!plain && d == 1 && random_.chance(0.3))
                d = random_.whole(2, 4);
        }
        if (!plain && !dims.empty() && random_.chance(0.3))
            dims.erase(dims.begin(), dims.begin() + random_.whole(1, static_cast<std::int64_t>(dims.size())));
        else if (!plain && dims.size() < 4 && random_.chance(0.15))
            dims.insert(dims.begin(), random_.whole(1, 3));
        return dims;
    }

    bool broadcasts(const std::vector<extents>& dims, int value) const {
        bool ok = true;
        shape all = testing::shape_from(program_.code[static_cast<std::size_t>(value)].dims);
        for (const extents& d : dims) all = broadcast(all, testing::shape_from(d), ok);
        return ok;
    }

    bool append(const operation& op) {
        const program before = program_;
        const auto values = values_;
        const auto spans = spans_;
        if (try_append(op)) return true;
        program_ = before, values_ = values, spans_ = spans;
        return false;
    }

    bool try_append(const operation& op) {
        instruction c;
        c.op = op.name;
        std::vector<extents> dims;
        std::vector<int> chosen;
        for (std::size_t k = 0; k < op.types.size(); ++k) {
            int value = -1;
            const bool index = op.types[k] == dtype::i32; // which indices fit is known when attributes are
            const std::int64_t unlimited = std::int64_t{1} << 40;
            if (k == 0) {
                if (random_.chance(0.88))
                    value = existing([&](int v) { return valid(v, op.types[0], op.domains[0], unlimited); });
                dims.push_back(value < 0 ? random_dims() : program_.code[static_cast<std::size_t>(value)].dims);
            } else {
                extents wanted;
                if (op.partner) {
                    if (!op.partner(random_, k, dims, wanted)) return false;
                } else {
                    wanted = broadcast_partner(dims[0]);
                    const int other = random_.chance(0.6) ? existing([&](int v) {
                        return valid(v, op.types[k], op.domains[k], unlimited) && broadcasts(dims, v);
                    })
                                                          : -1;
                    if (other >= 0) wanted = program_.code[static_cast<std::size_t>(other)].dims;
                }
                if (testing::count_of(wanted) > options_.most_elements || wanted.size() > 5) return false;
                if (!index && random_.chance(0.85))
                    value = existing([&](int v) {
                        return valid(v, op.types[k], op.domains[k], unlimited) &&
                               program_.code[static_cast<std::size_t>(v)].dims == wanted;
                    });
                dims.push_back(wanted);
            }
            chosen.push_back(index ? -1 : value);
        }
        if (op.draw && !op.draw(random_, dims, c.with)) return false;
        for (std::size_t k = 0; k < op.types.size(); ++k) {
            if (chosen[k] < 0) {
                const bool limited = op.types[k] == dtype::i32 && op.index_limit;
                const std::int64_t limit = limited ? op.index_limit(dims, c.with) : 5;
                if (limit < 1) return false;
                if (op.types[k] == dtype::i32)
                    chosen[k] = existing([&](int v) {
                        return valid(v, dtype::i32, {}, limit) &&
                               program_.code[static_cast<std::size_t>(v)].dims == dims[k];
                    });
                if (chosen[k] < 0) chosen[k] = add_leaf(op.types[k], dims[k], op.domains[k], limit);
            }
            c.operands.push_back(chosen[k]);
        }
        return evaluate_and_keep(op, c);
    }

    bool evaluate_and_keep(const operation& op, instruction c) {
        std::vector<any_tensor> operands;
        for (const int operand : c.operands) operands.push_back(values_[static_cast<std::size_t>(operand)]);
        try {
            check_domains(op, c, operands);
            const any_tensor value = run_instruction(c, operands.data());
            const span s = span_of(value);
            const bool large = value.type() == dtype::f64 && value.size() > 0 && !(std::max(-s.low, s.high) <= 1e3);
            if (large || value.rank() > 5 || value.size() > options_.most_elements) return false;
            for (std::int64_t i = 0; value.type() == dtype::f64 && i < value.size(); ++i)
                if (std::isnan(static_cast<const double*>(value.read())[i])) return false;
            c.type = value.type();
            c.dims = testing::extents_of(value.shape());
            keep(c, value);
            return true;
        } catch (const error&) { // the operands do not fit this operation
            return false;
        }
    }

    void choose_outputs() {
        std::vector<int> uses(program_.code.size(), 0);
        for (const instruction& c : program_.code)
            for (const int operand : c.operands) ++uses[static_cast<std::size_t>(operand)];
        int last = program_.size() - 1;
        while (last > 0 && program_.code[static_cast<std::size_t>(last)].leaf()) --last;
        for (int i = 0; i < program_.size(); ++i) {
            const bool unused =
                uses[static_cast<std::size_t>(i)] == 0 && !program_.code[static_cast<std::size_t>(i)].leaf();
            if (i == last || random_.chance(unused ? 0.8 : 0.06)) program_.outputs.push_back(i);
        }
    }

    void mark_inner() {
        std::vector<int> uses(program_.code.size(), 0), size(program_.code.size(), 1);
        std::vector<bool> bound(program_.code.size(), false);
        for (const int output : program_.outputs) bound[static_cast<std::size_t>(output)] = true;
        for (const instruction& c : program_.code)
            for (const int operand : c.operands) {
                const auto at = static_cast<std::size_t>(operand);
                ++uses[at];
                if (!operation_named(c.op).takes_formula) bound[at] = true;
            }
        for (std::size_t i = 0; i < program_.code.size(); ++i) {
            instruction& c = program_.code[i];
            if (c.leaf()) continue;
            for (const int operand : c.operands)
                if (program_.code[static_cast<std::size_t>(operand)].inner)
                    size[i] += size[static_cast<std::size_t>(operand)];
            c.inner = operation_named(c.op).formula && !bound[i] && uses[i] > 0 && uses[i] <= 2 && size[i] <= 10 &&
                      random_.chance(0.6);
        }
    }

    choices random_;
    generator_options options_;
    double total_weight_ = 0;
    program program_;
    std::vector<any_tensor> values_;
    std::vector<span> spans_;
};

} // namespace

program generate(std::uint64_t seed, const generator_options& options) { return generator(seed, options).run(); }

} // namespace tapegraph::fuzz
