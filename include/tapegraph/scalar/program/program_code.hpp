#pragma once

#include <tapegraph/scalar/program/symbol_graph.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

/// A graph as instructions: what the results and guards need, in order, pairs of operations joined, values in slots that
/// are used again.

namespace tapegraph::scalars {

constexpr std::uint8_t program_entry(program_code code, unsigned last) {
    return static_cast<std::uint8_t>(static_cast<unsigned>(code) * 5 + last);
}
/// The bits of a guard's `extra`: the truth that is expected, and whether it compares its operands the other way round.
inline constexpr unsigned guard_expects = 1, guard_exchanges = 2;

template <class T>
struct compiled_program {
    std::vector<program_instruction> instructions;
    std::vector<const operation_row<T>*> functions; ///< of all instructions but pairs
    std::vector<T> constants;                       ///< in the slots after the inputs
    std::vector<std::uint32_t> results;             ///< slots
    std::size_t inputs = 0, slots = 1;
};

/// The instruction of two operations, the first of which is operand `side` of the second; call if there is none. The
/// first one's operands come first.
constexpr program_code joined_code(program_code first, program_code second, int side) {
    using enum program_code;
    switch (second) {
    case add:
        return first == multiply ? multiply_add : first == add ? add_twice : first == subtract ? subtract_add : call;
    case multiply:
        return first == multiply   ? multiply_twice
               : first == add      ? add_multiply
               : first == subtract ? subtract_multiply
                                   : call;
    case subtract:
        if (first == multiply) return side == 0 ? multiply_subtract : subtract_product;
        if (first == add) return side == 0 ? add_subtract : subtract_sum;
        return call;
    case unless_zero:
        if (side == 0) return call; // the seed
        return first == multiply ? multiply_unless_zero : first == divide ? divide_unless_zero : call;
    case magnitude: return first == subtract ? distance : call;
    default: return call;
    }
}

/// The instruction of two operations whose operand c is a product; call if there is none. `exchanged` says that the
/// product's operands come first.
struct joined_product {
    program_code code = program_code::call;
    bool exchanged = false;
};
constexpr joined_product with_product(program_code code) {
    using enum program_code;
    switch (code) {
    case multiply_add: return {add_products};
    case multiply_subtract: return {subtract_products};
    case subtract_product: return {subtract_products, true};
    case multiply_twice: return {multiply_products};
    case add_twice: return {add_add_product};
    case subtract_add: return {subtract_add_product};
    case add_subtract: return {add_subtract_product};
    case subtract_sum: return {product_subtract_sum};
    case add_multiply: return {sum_product};
    case subtract_multiply: return {difference_product};
    default: return {};
    }
}

template <class T>
class program_compiler {
public:
    program_compiler(const symbol_graph<T>& graph, const std::vector<std::uint32_t>& results) : graph_(graph) {
        program_.inputs = graph.inputs().size();
        find_uses(results);
        join_pairs();
        place_leaves();
        emit();
        for (const std::uint32_t at : results) program_.results.push_back(slot_[at]);
    }
    compiled_program<T> take() { return std::move(program_); }

private:
    using node = typename symbol_graph<T>::node;
    static constexpr std::uint32_t nothing = 0xFFFFFFFFu;

    static std::size_t operands_of(const node& n) { return n.operation == nullptr ? 0 : n.operation->operands; }

    // How often each node is read; results and guards count as one more, so that they stay by themselves.
    void find_uses(const std::vector<std::uint32_t>& results) {
        uses_.assign(graph_.size(), 0);
        last_.assign(graph_.size(), 0);
        for (const std::uint32_t at : results) uses_[at] += 2, last_[at] = nothing;
        for (const program_guard& guard : graph_.guards()) {
            if (comparison_of(guard).code == program_code::guard) uses_[guard.condition] += 2;
            const node& n = graph_[guard.condition];
            for (std::size_t i = 0; i < operands_of(n); ++i) uses_[n.operand[i]] += 2; // the message names their values
        }
        for (std::size_t at = graph_.size(); at-- > 1;) {
            if (uses_[at] == 0) continue;
            const node& n = graph_[static_cast<std::uint32_t>(at)];
            for (std::size_t i = 0; i < operands_of(n); ++i) ++uses_[n.operand[i]];
        }
    }
    // Whether a guard is |a - b| < c d, of values that nothing else reads: the compared values, the difference, or none.
    std::array<std::uint32_t, 3> parts_of_near(const program_guard& guard) const {
        const guard_kind kind = comparison_of(guard);
        if (kind.code != program_code::guard_less) return {};
        const node& n = graph_[guard.condition];
        const std::uint32_t left = n.operand[kind.exchanged ? 1 : 0], right = n.operand[kind.exchanged ? 0 : 1];
        const auto is = [&](std::uint32_t at, program_code code, std::uint32_t uses) {
            return uses_[at] == uses && graph_[at].operation != nullptr && graph_[at].operation->code == code;
        };
        if (!is(left, program_code::magnitude, 2) || !is(right, program_code::multiply, 2)) return {};
        const std::uint32_t difference = graph_[left].operand[0];
        if (!is(difference, program_code::subtract, 1)) return {};
        return {left, right, difference};
    }
    // Chooses which operations become a part of a guard, or the first of a pair.
    void join_pairs() {
        part_of_.assign(graph_.size(), 0);
        for (const program_guard& guard : graph_.guards())
            for (const std::uint32_t part : parts_of_near(guard))
                if (part != 0) part_of_[part] = guard.condition;
        for (std::size_t i = graph_.size(); i-- > 1;) {
            const auto at = static_cast<std::uint32_t>(i);
            const node& n = graph_[at];
            if (uses_[at] == 0 || operands_of(n) > 2 || part_of_[at] != 0) continue;
            for (int side = 0; side < static_cast<int>(operands_of(n)); ++side) {
                const std::uint32_t first = n.operand[static_cast<std::size_t>(side)];
                const node& f = graph_[first];
                if (uses_[first] != 1 || operands_of(f) != 2) continue;
                const program_code code = joined_code(f.operation->code, n.operation->code, side);
                if (code == program_code::call) continue;
                part_of_[first] = at;
                const std::uint32_t other = n.operand[static_cast<std::size_t>(1 - side)];
                if (with_product(code).code != program_code::call && other != first && is_single_product(other))
                    part_of_[other] = at;
                break;
            }
        }
    }
    bool is_single_product(std::uint32_t at) const {
        const node& n = graph_[at];
        return uses_[at] == 1 && n.operation != nullptr && n.operation->code == program_code::multiply;
    }
    void place_leaves() {
        slot_.assign(graph_.size(), nothing);
        for (std::size_t i = 0; i < program_.inputs; ++i)
            slot_[graph_.inputs()[i]] = static_cast<std::uint32_t>(i), last_[graph_.inputs()[i]] = nothing;
        for (std::uint32_t at = 1; at < graph_.size(); ++at)
            if (uses_[at] != 0 && graph_.is_constant(at)) {
                slot_[at] = static_cast<std::uint32_t>(program_.inputs + program_.constants.size());
                last_[at] = nothing;
                program_.constants.push_back(graph_.constant_value(at));
            }
        program_.slots = program_.inputs + program_.constants.size();
    }

    // How a guard is checked: by a comparison of its own, or by its condition's value.
    struct guard_kind {
        program_code code;
        bool negated = false, exchanged = false; ///< what is expected, the operands
    };
    guard_kind comparison_of(const program_guard& guard) const {
        const operation_row<T>* const row = graph_[guard.condition].operation;
        if (row == &row_of<less_op, T>) return {program_code::guard_less};
        if (row == &row_of<less_equal_op, T>) return {program_code::guard_less_equal};
        if (row == &row_of<greater_op, T>) return {program_code::guard_less, false, true};
        if (row == &row_of<greater_equal_op, T>) return {program_code::guard_less_equal, false, true};
        if (row == &row_of<equal_op, T>) return {program_code::guard_equal};
        if (row == &row_of<not_equal_op, T>) return {program_code::guard_equal, true};
        return {program_code::guard};
    }
    program_instruction guard_instruction(std::uint32_t index) const {
        const program_guard& guard = graph_.guards()[index];
        const node& n = graph_[guard.condition];
        const guard_kind kind = comparison_of(guard);
        const auto operand = [&](std::size_t i) { return i < operands_of(n) ? n.operand[i] : guard.condition; };
        const auto extra = static_cast<std::uint16_t>((guard.expected != kind.negated ? guard_expects : 0u) |
                                                      (kind.exchanged ? guard_exchanges : 0u));
        if (kind.code == program_code::guard)
            return {kind.code, 0, extra, index, guard.condition, operand(0), operand(1), 0};
        const auto [left, right, difference] = parts_of_near(guard);
        if (left != 0)
            return {program_code::guard_near,
                    0,
                    extra,
                    index,
                    graph_[difference].operand[0],
                    graph_[difference].operand[1],
                    graph_[right].operand[0],
                    graph_[right].operand[1]};
        return {kind.code, 0, extra, index, operand(kind.exchanged ? 1 : 0), operand(kind.exchanged ? 0 : 1), 0, 0};
    }

    program_instruction operands(std::uint32_t at) const {
        const node& n = graph_[at];
        program_instruction x{n.operation->code, 0, 0, at, n.operand[0], n.operand[1], n.operand[2], 0};
        for (int side = 0; side < static_cast<int>(operands_of(n)) && operands_of(n) <= 2; ++side) {
            const std::uint32_t first = n.operand[static_cast<std::size_t>(side)];
            if (part_of_[first] != at) continue;
            const node& f = graph_[first];
            x.code = joined_code(f.operation->code, n.operation->code, side);
            x.a = f.operand[0], x.b = f.operand[1], x.c = n.operand[static_cast<std::size_t>(1 - side)];
            if (x.c == first || part_of_[x.c] != at) break;
            const node& product = graph_[x.c];
            const joined_product joined = with_product(x.code);
            x.code = joined.code, x.c = product.operand[0], x.d = product.operand[1];
            if (joined.exchanged) std::swap(x.a, x.c), std::swap(x.b, x.d);
            break;
        }
        return x;
    }
    // Instructions name nodes first, and slots once it is known which are read last.
    void emit() {
        std::vector<program_instruction>& all = program_.instructions;
        std::size_t next_guard = 0;
        const std::vector<std::uint32_t> guard_order = guards_in_order();
        for (std::uint32_t at = 1; at < graph_.size(); ++at) {
            if (uses_[at] != 0 && graph_[at].operation != nullptr && part_of_[at] == 0) all.push_back(operands(at));
            for (; next_guard < guard_order.size(); ++next_guard) {
                const std::uint32_t index = guard_order[next_guard];
                if (graph_.guards()[index].condition != at) break;
                all.push_back(guard_instruction(index));
            }
        }
        bring_equals_together();
        for (std::size_t i = 0; i < all.size(); ++i)
            for (const std::uint32_t x : {all[i].a, all[i].b, all[i].c, all[i].d})
                if (x != 0 && last_[x] != nothing) last_[x] = static_cast<std::uint32_t>(i);
        std::vector<std::uint32_t> free;
        std::uint32_t last_out = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            program_instruction& x = all[i];
            const std::uint32_t at = x.out;
            const std::array<std::uint32_t, 4> read{x.a, x.b, x.c, x.d};
            if (x.code < program_code::multiply_add && !is_guard(x.code)) x.extra = function(*graph_[at].operation);
            x.entry = program_entry(x.code, place_of_last(x, last_out));
            for (std::uint32_t* const place : {&x.a, &x.b, &x.c, &x.d}) *place = *place == 0 ? 0 : slot_[*place];
            for (std::size_t k = 0; k < read.size(); ++k) {
                const std::uint32_t r = read[k];
                if (r == 0 || last_[r] != i || std::find(read.begin(), read.begin() + k, r) != read.begin() + k)
                    continue;
                free.push_back(slot_[r]);
            }
            if (is_guard(x.code)) continue;
            last_out = at;
            if (free.empty()) {
                slot_[at] = static_cast<std::uint32_t>(program_.slots++);
            } else {
                slot_[at] = free.back();
                free.pop_back();
            }
            x.out = slot_[at];
        }
        if (program_.slots == 0) program_.slots = 1; // operands that an operation does not have are slot 0
        all.push_back({program_code::end, program_entry(program_code::end, 0), 0, 0, 0, 0, 0, 0});
    }
    // Within windows, puts equal instructions that do not need each other side by side, level by level: the interpreter
    // runs them in a loop, and the processor works on several at once. Where a window has little that is independent, the
    // order stays, in which results are mostly read at once.
    void bring_equals_together() {
        constexpr std::size_t window = 1024, least_mean = 3;
        std::vector<program_instruction>& all = program_.instructions;
        std::vector<std::uint32_t> level(graph_.size(), 0); // of results in this window
        struct staged {
            std::uint64_t order;
            program_instruction instruction;
        };
        std::vector<staged> order;
        for (std::size_t first = 0; first < all.size(); first += window) {
            const std::size_t end = std::min(first + window, all.size());
            order.clear();
            for (std::size_t i = first; i < end; ++i) {
                const program_instruction& x = all[i];
                const std::uint64_t own = std::max({level[x.a], level[x.b], level[x.c], level[x.d]}) + std::uint64_t{1};
                const std::uint64_t kind = x.code == program_code::call ? function(*graph_[x.out].operation) : 0;
                if (!is_guard(x.code)) level[x.out] = static_cast<std::uint32_t>(own);
                order.push_back({own << 32 | static_cast<std::uint64_t>(x.code) << 16 | kind, x});
            }
            for (const staged& x : order)
                if (!is_guard(x.instruction.code)) level[x.instruction.out] = 0;
            std::stable_sort(order.begin(), order.end(),
                             [](const staged& x, const staged& y) { return x.order < y.order; });
            std::size_t runs = 1;
            for (std::size_t i = 1; i < order.size(); ++i)
                runs += static_cast<std::uint32_t>(order[i].order) != static_cast<std::uint32_t>(order[i - 1].order);
            if (order.size() < least_mean * runs) continue;
            for (std::size_t i = first; i < end; ++i) all[i] = order[i - first].instruction;
        }
    }
    // Which operand, counted from 1, is the result of the last instruction that has one; 0 if none is.
    static unsigned place_of_last(const program_instruction& x, std::uint32_t last) {
        if (last == 0 || x.code == program_code::call || is_guard(x.code) || x.code == program_code::choose) return 0;
        const bool one =
            x.code == program_code::negate || x.code == program_code::square_root || x.code == program_code::magnitude;
        const bool three = x.code >= program_code::multiply_add, four = x.code >= program_code::add_products;
        if (x.a == last) return 1;
        if (!one && x.b == last) return 2;
        return three && x.c == last ? 3u : four && x.d == last ? 4u : 0u;
    }
    std::vector<std::uint32_t> guards_in_order() const {
        std::vector<std::uint32_t> order(graph_.guards().size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
        std::stable_sort(order.begin(), order.end(), [&](std::uint32_t x, std::uint32_t y) {
            return graph_.guards()[x].condition < graph_.guards()[y].condition;
        });
        return order;
    }
    std::uint16_t function(const operation_row<T>& row) {
        std::vector<const operation_row<T>*>& all = program_.functions;
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i] == &row) return static_cast<std::uint16_t>(i);
        if (all.size() == 0xFFFF) throw range_error("tg::number_program: more than 65535 kinds of operations");
        all.push_back(&row);
        return static_cast<std::uint16_t>(all.size() - 1);
    }

    const symbol_graph<T>& graph_;
    compiled_program<T> program_;
    std::vector<std::uint32_t> uses_, last_, part_of_, slot_; ///< of each node
};

} // namespace tapegraph::scalars
