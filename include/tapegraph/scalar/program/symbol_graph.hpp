#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/scalar/program/operation_row.hpp>
#include <tapegraph/scalar/tape_number.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

/// The operations of a recorded program, in order. An operation on the same operands is one node, however often it is
/// recorded (value numbering), and what can be computed or left out without changing a bit is.

namespace tapegraph::scalars {

/// A comparison that the recorded code has branched on, or an integer that it has made of a number.
struct program_guard {
    std::uint32_t condition; ///< a node
    bool expected;
    std::uint64_t statement; ///< operations recorded before it, counted from 1
};

template <class T>
class symbol_graph {
public:
    using row = operation_row<T>;
    struct node {
        const row* operation; ///< null for inputs and constants
        std::array<std::uint32_t, 3> operand;
    };
    static constexpr std::uint32_t is_input = 1, is_constant_number = 2; ///< operand 2 of a node without operation

    /// `values` says whether symbols have values, which branches are taken by: while a function is recorded.
    explicit symbol_graph(bool values) : values_(values), number_(new_tape_number()) {
        nodes_.push_back({nullptr, {0, 0, 0}}); // node 0 is no node
        table_.resize(64);
    }
    /// The same nodes and guards, for operations that are added; these have no values.
    explicit symbol_graph(const symbol_graph& other, bool values)
        : nodes_(other.nodes_),
          table_(other.table_),
          guards_(other.guards_),
          inputs_(other.inputs_),
          recorded_(other.recorded_),
          values_(values),
          number_(new_tape_number()) {}
    symbol_graph(const symbol_graph&) = delete;
    symbol_graph& operator=(const symbol_graph&) = delete;

    std::uint32_t number() const { return number_; }
    bool has_values() const { return values_; }
    std::size_t size() const { return nodes_.size(); }
    const node& operator[](std::uint32_t at) const { return nodes_[at]; }
    const std::vector<std::uint32_t>& inputs() const { return inputs_; }
    const std::vector<program_guard>& guards() const { return guards_; }

    bool is_constant(std::uint32_t at) const {
        return nodes_[at].operation == nullptr && nodes_[at].operand[2] == is_constant_number;
    }
    T constant_value(std::uint32_t at) const {
        const std::uint64_t bits = nodes_[at].operand[0] | static_cast<std::uint64_t>(nodes_[at].operand[1]) << 32;
        T value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
    std::uint32_t constant(T value) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof value);
        return interned(
            {nullptr, {static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32), is_constant_number}});
    }
    std::uint32_t add_input() {
        const auto index = static_cast<std::uint32_t>(inputs_.size());
        inputs_.push_back(interned({nullptr, {index, 0, is_input}}));
        return inputs_.back();
    }
    /// The node of an operation, or of what it comes to.
    std::uint32_t operation(const row& op, std::array<std::uint32_t, 3> x) {
        if (op.commutes && x[1] < x[0]) std::swap(x[0], x[1]);
        bool constants = true;
        for (std::size_t i = 0; i < op.operands; ++i) constants &= is_constant(x[i]);
        if (constants) {
            std::array<T, 3> v{};
            for (std::size_t i = 0; i < op.operands; ++i) v[i] = constant_value(x[i]);
            return constant(op.value(v[0], v[1], v[2]));
        }
        if (const std::uint32_t simpler = simplified(op, x)) return simpler;
        return interned({&op, x});
    }
    template <class Op>
    std::uint32_t operation(std::uint32_t a, std::uint32_t b = 0, std::uint32_t c = 0) {
        return operation(row_of<Op, T>, {a, b, c});
    }
    /// The number of an operation of the recorded code, counted from 1.
    void count_statement() { ++recorded_; }
    void guard(std::uint32_t condition, bool expected) {
        for (std::size_t i = guards_.size(), last = i > 8 ? i - 8 : 0; i-- > last;)
            if (guards_[i].condition == condition) return; // asked again at once
        guards_.push_back({condition, expected, recorded_});
    }

private:
    bool is_number(std::uint32_t at, T value) const {
        return is_constant(at) && constant_value(at) == value &&
               std::signbit(constant_value(at)) == std::signbit(value);
    }
    bool is(std::uint32_t at, program_code code) const {
        return nodes_[at].operation != nullptr && nodes_[at].operation->code == code;
    }
    bool is_negated(std::uint32_t at) const { return is(at, program_code::negate); }
    std::uint32_t under(std::uint32_t at) const { return nodes_[at].operand[0]; }

    // A node with the same bits for all operands that are not NaN, or 0.
    std::uint32_t simplified(const row& op, const std::array<std::uint32_t, 3>& x) {
        const auto [a, b, c] = x;
        switch (op.code) {
        case program_code::add:
            if (is_number(a, T(-0.0))) return b;
            if (is_number(b, T(-0.0))) return a;
            if (is_negated(b)) return operation<subtract_op>(a, under(b));
            if (is_negated(a)) return operation<subtract_op>(b, under(a));
            return 0;
        case program_code::subtract:
            if (is_number(b, T(0))) return a;
            if (is_negated(b)) return operation<add_op>(a, under(b));
            return 0;
        case program_code::multiply:
            if (is_number(a, T(1))) return b;
            if (is_number(b, T(1))) return a;
            if (is_number(a, T(-1))) return operation<negate_op>(b);
            if (is_number(b, T(-1))) return operation<negate_op>(a);
            if (is_negated(a) && is_negated(b)) return operation<multiply_op>(under(a), under(b));
            if (is_negated(a) && is_constant(b)) return operation<multiply_op>(under(a), constant(-constant_value(b)));
            if (is_negated(b) && is_constant(a)) return operation<multiply_op>(under(b), constant(-constant_value(a)));
            // Signs go outward, where a sum takes them.
            if (is_negated(a)) return operation<negate_op>(operation<multiply_op>(under(a), b));
            if (is_negated(b)) return operation<negate_op>(operation<multiply_op>(a, under(b)));
            return 0;
        case program_code::divide: {
            if (is_negated(a) && is_negated(b)) return operation<divide_op>(under(a), under(b));
            if (is_negated(a)) return operation<negate_op>(operation<divide_op>(under(a), b));
            if (!is_constant(b)) return 0;
            const T divisor = constant_value(b), reciprocal = T(1) / divisor;
            int exponent = 0;
            if (!std::isnormal(divisor) || !std::isnormal(reciprocal)) return 0;
            if (std::fabs(std::frexp(divisor, &exponent)) != T(0.5)) return 0; // a power of two alone
            return operation<multiply_op>(a, constant(reciprocal));
        }
        case program_code::negate: return is_negated(a) ? under(a) : 0;
        case program_code::choose:
            if (b == c) return b;
            return is_constant(a) ? (constant_value(a) != T(0) ? b : c) : 0;
        case program_code::unless_zero:
            if (is_constant(a)) return constant_value(a) == T(0) ? constant(T(0)) : b;
            // A sum takes the sign. (Of a 0 it may be another one, as adjoints of 0 are of either sign.)
            if (is_negated(b)) return operation<negate_op>(operation<unless_zero_op>(a, under(b)));
            return 0;
        default: break;
        }
        if (&op == &row_of<pow_op, T>) {
            if (is_number(b, T(1))) return a;
            if (is_number(b, T(0)) || is_number(b, T(-0.0))) return constant(T(1));
        }
        return 0;
    }

    static std::size_t hash(const node& n) {
        std::uint64_t h = reinterpret_cast<std::uintptr_t>(n.operation);
        for (const std::uint32_t x : n.operand) h = (h ^ x) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
        return static_cast<std::size_t>(h);
    }
    static bool same(const node& x, const node& y) { return x.operation == y.operation && x.operand == y.operand; }

    std::uint32_t interned(const node& n) {
        const std::size_t mask = table_.size() - 1;
        std::size_t place = hash(n) & mask;
        for (; table_[place] != 0; place = (place + 1) & mask)
            if (same(nodes_[table_[place]], n)) return table_[place];
        if (nodes_.size() > 0xFFFFFFF0u) throw range_error("tg::record: more than 4294967280 operations");
        const auto at = static_cast<std::uint32_t>(nodes_.size());
        nodes_.push_back(n);
        table_[place] = at;
        if (2 * nodes_.size() > table_.size()) rehash();
        return at;
    }
    void rehash() {
        table_.assign(2 * table_.size(), 0);
        const std::size_t mask = table_.size() - 1;
        for (std::uint32_t at = 1; at < nodes_.size(); ++at) {
            std::size_t place = hash(nodes_[at]) & mask;
            while (table_[place] != 0) place = (place + 1) & mask;
            table_[place] = at;
        }
    }

    std::vector<node> nodes_;
    std::vector<std::uint32_t> table_; ///< places of nodes by hash; its size is a power of two
    std::vector<program_guard> guards_;
    std::vector<std::uint32_t> inputs_;
    std::uint64_t recorded_ = 0;
    bool values_;
    std::uint32_t number_;
};

/// The graph to which operations on symbols are added in this thread; null outside of recordings.
template <class T>
inline constinit thread_local symbol_graph<T>* active_graph = nullptr;

/// Makes a graph the active one for the life of this object.
template <class T>
class active_graph_scope {
public:
    explicit active_graph_scope(symbol_graph<T>& graph) : outer_(active_graph<T>) { active_graph<T> = &graph; }
    ~active_graph_scope() { active_graph<T> = outer_; }
    active_graph_scope(const active_graph_scope&) = delete;
    active_graph_scope& operator=(const active_graph_scope&) = delete;

private:
    symbol_graph<T>* outer_;
};

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_symbol() {
    throw argument_error(
        "tg::symbol: a number of another recording, or of one that has ended; a constant is x.value()");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_branch_on_derivative() {
    throw argument_error("tg::number_program: the derivative of an operation branches on a symbol; use where()");
}

} // namespace tapegraph::scalars
