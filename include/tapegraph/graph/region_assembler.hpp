#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/graph/kernel_registry.hpp>
#include <tapegraph/ir/region_view.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace tapegraph::ir::detail {

/// A region as the interpreter runs it. Registers are used again where nothing reads them any more.
class region_assembler {
public:
    region_assembler(const region_view& code, const operation* const* ops, runtime::interpreted_kernel& to)
        : code_(code), ops_(ops), to_(to) {}

    /// `wanted`: the registers of the results that are computed.
    void assemble(const std::vector<int>& wanted) {
        const int slots = code_.slots(), count = slots + code_.instructions();
        last_reader_.assign(static_cast<std::size_t>(count), -1);
        needed_.assign(static_cast<std::size_t>(count), false);
        place_.assign(static_cast<std::size_t>(count), -1);
        for (const int r : wanted) need(r);
        for (int i = count - slots - 1; i >= 0; --i) {
            if (!needed_[at(slots + i)]) continue;
            const region_instruction step = code_.instruction(i);
            for (int k = 0; k < step.operands(); ++k) need(step.operand[k]);
        }
        to_.slots = slots;
        for (int s = 0; s < slots; ++s) {
            to_.slot_sizes[s] = static_cast<std::int64_t>(size_of(code_.slot_type(s)));
            place_[at(s)] = s;
        }
        for (int i = 0; i < code_.instructions(); ++i) {
            const region_instruction step = code_.instruction(i);
            for (int k = 0; k < step.operands(); ++k) last_reader_[at(step.operand[k])] = i;
        }
        for (const int r : wanted) last_reader_[at(r)] = code_.instructions(); // until the end
        results(wanted);
    }

private:
    static std::size_t at(int i) { return static_cast<std::size_t>(i); }
    void need(int r) { needed_[at(r)] = true; }

    void results(const std::vector<int>& wanted) {
        // An operand that is a result among several is copied first: another result may be written over it.
        std::vector<int> copy(wanted.size(), -1);
        for (std::size_t k = 0; k < wanted.size() && wanted.size() > 1; ++k)
            if (wanted[k] < code_.slots()) {
                cpu::interpreted_region::step s;
                s.operands = 1;
                s.operand[0] = wanted[k];
                s.result = code_.slot_type(wanted[k]);
                copy[k] = s.target = new_register();
                to_.steps.push_back(s);
            }
        for (int i = 0; i < code_.instructions(); ++i)
            if (needed_[at(code_.slots() + i)]) instruct(i);
        to_.results = static_cast<int>(wanted.size());
        int last_results = 0;
        for (std::size_t k = 0; k < wanted.size(); ++k) {
            to_.result[k] = copy[k] >= 0 ? to_.slots + copy[k] : place_[at(wanted[k])];
            to_.result_sizes[k] = static_cast<std::int64_t>(size_of(code_.type_of(wanted[k])));
            if (!to_.steps.empty() && copy[k] < 0 && to_.result[k] == to_.slots + to_.steps.back().target) {
                to_.direct = static_cast<int>(k);
                ++last_results;
            }
        }
        if (last_results != 1) to_.direct = -1;
        measure();
    }

    void instruct(int i) {
        const region_instruction code = code_.instruction(i);
        const operation& op = *ops_[code.op];
        cpu::interpreted_region::step s;
        s.operands = code.operands();
        s.conditions = op.conditions;
        s.common = code_.type_of(code.operand[op.conditions < s.operands ? op.conditions : 0]);
        s.result = code.type;
        for (int k = 0; k < s.operands; ++k) s.operand[k] = place_[at(code.operand[k])];
        const registered_kernel* const known = kernel_registry::instance().find(&op, s.common);
        s.run = known != nullptr ? known->instruction : nullptr;
        s.evaluate = op.evaluate;
        if (s.run == nullptr && (op.evaluate == nullptr || !takes(op, s.common)))
            throw dtype_error(std::string(op.name) + " of " + name_of(s.common) +
                              ": register_kernels makes it known to graphs that are made when the program runs");
        // An operand that is read for the last time may be written over where its elements are as wide as those of the result.
        std::vector<int> read;
        for (int k = 0; k < s.operands; ++k) {
            const int r = code.operand[k];
            if (r < code_.slots() || last_reader_[at(r)] != i) continue;
            last_reader_[at(r)] = -1; // once, if it is read twice
            (size_of(code_.type_of(r)) == size_of(s.result) ? free_ : read).push_back(place_[at(r)] - code_.slots());
        }
        s.target = new_register();
        free_.insert(free_.end(), read.begin(), read.end());
        place_[at(code_.slots() + i)] = code_.slots() + s.target;
        to_.steps.push_back(s);
    }
    static bool takes(const operation& op, dtype common) { return is_floating(common) || op.from_integers; }
    int new_register() {
        if (free_.empty()) return to_.registers++;
        const int r = free_.back();
        free_.pop_back();
        return r;
    }

    // As many elements at once as leave registers and operands in the first cache.
    void measure() {
        std::int64_t widest = 1;
        for (int r = 0; r < code_.slots() + code_.instructions(); ++r)
            widest = std::max(widest, static_cast<std::int64_t>(size_of(code_.type_of(r))));
        constexpr std::int64_t cache = 24 * 1024, most = 1024, least = 128;
        const std::int64_t valid = cache / ((to_.registers + to_.slots + to_.results) * widest);
        to_.elements = std::min(most, std::max(least, valid / least * least));
        to_.register_bytes = to_.elements * widest;
    }

    region_view code_;
    const operation* const* ops_;
    runtime::interpreted_kernel& to_;
    std::vector<int> last_reader_, place_;
    std::vector<bool> needed_;
    std::vector<int> free_;
};

} // namespace tapegraph::ir::detail
