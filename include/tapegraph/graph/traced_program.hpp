#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/library_kernels.hpp>
#include <tapegraph/ir/text.hpp>

#include <deque>
#include <memory>
#include <string>
#include <vector>

/// Graphs that are made when the program runs: the builders and passes of graph/compile.hpp without a compiler. What they fuse is
/// interpreted, instruction by instruction, all else is the kernels of the other modes: the same calls in the same order, and the same
/// bits.

namespace tapegraph::ir {

namespace detail {

/// The error of a trace as one line: what does not fit, both operands, the scope and the line.
inline std::string error_line(const trace& t) {
    const auto fact = [&](int k) { return std::string(error_fact(t, k).view()); };
    std::string text = fact(0);
    if (t.error.operands > 0) {
        text += ": " + fact(2);
        if (t.error.operands > 1) text += " and " + fact(3);
    }
    if (const std::string scope = fact(4); !scope.empty()) text += ", in scope '" + scope + "'";
    if (t.error.line > 0) text += ", at " + fact(1);
    return text;
}

inline void throw_if_ill_formed(const trace& t) {
    if (t.error.what != nullptr) throw shape_error(error_line(t));
}

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
        const std::int64_t fits = cache / ((to_.registers + to_.slots + to_.results) * widest);
        to_.elements = std::min(most, std::max(least, fits / least * least));
        to_.register_bytes = to_.elements * widest;
    }

    region_view code_;
    const operation* const* ops_;
    runtime::interpreted_kernel& to_;
    std::vector<int> last_reader_, place_;
    std::vector<bool> needed_;
    std::vector<int> free_;
};

/// Between the stages of a builder the compiler keeps what freezing keeps (graph/freeze.hpp); so does this.
inline void begin_stage(trace& t) {
    t.history.clear();
    t.named.clear();
    t.results.clear();
    t.unique_scopes.clear();
    t.added_losses.clear();
    t.flows = {-1, -1, {}};
    t.many_flows = {};
    t.scope = t.line = t.place = t.computing_task = 0;
    t.task = {};
}

template <class Builder>
void trace_with(trace& t) {
    if constexpr (requires { typename Builder::previous; }) {
        trace_with<typename Builder::previous>(t);
        begin_stage(t);
    }
    if (t.error.what == nullptr) Builder::build(t);
    note_pass(t, "trace");
}

} // namespace detail

/// A trace, its schedule and its kernels, made by a builder at run time. A view of it stays valid as long as it lives.
class traced_program {
public:
    /// Traces with `Builder`, and lowers the graph if `lowers`. Throws shape_error for a model that does not fit together, in the words
    /// of the compiler.
    template <class Builder>
    static std::unique_ptr<traced_program> of(bool lowers = true) {
        auto p = std::make_unique<traced_program>();
        detail::trace_with<Builder>(p->trace_);
        detail::throw_if_ill_formed(p->trace_);
        if (lowers) p->lower();
        p->look();
        return p;
    }

    traced_program() = default;
    traced_program(const traced_program&) = delete;
    traced_program& operator=(const traced_program&) = delete;

    const program_view& view() const { return view_; }
    const trace& traced() const { return trace_; }

private:
    // The passes of compile_program (graph/compile.hpp), in its order.
    void lower() {
        simplify(trace_);
        fold_numbers(trace_);
        eliminate_common_subexpressions(trace_);
        eliminate_dead_nodes(trace_);
        fuse_epilogues(trace_);
        join_pads(trace_);
        eliminate_dead_nodes(trace_);
        view_slices(trace_);
        snapshot_variables(trace_);
        schedule_ = make_schedule(trace_);
        trace_.history.push_back({"kernel calls", schedule_.steps.size()});
        detail::throw_if_ill_formed(trace_);
        for (const kernel_entry& k : schedule_.kernels) {
            interpreted_.push_back(nullptr);
            functions_.push_back(function_of(k));
        }
    }

    runtime::kernel_pair function_of(const kernel_entry& k) {
        const auto type = static_cast<dtype>(k.type);
        const auto kind = static_cast<kernel_kind>(k.kind);
        const operation* const op = k.op >= 0 ? schedule_.ops[k.op] : nullptr;
        if (kind == kernel_kind::operation) return registered(*op, type).kernel;
        const region_view code{schedule_.kernel_words.begin() + k.first_word};
        if (kind == kernel_kind::reduction) {
            if (code.instructions() == 0) return registered(*op, type).kernel; // an operand in memory
            assemble(code, {code.result(0)});
            return {registered(*op, type).fused, {}};
        }
        std::vector<int> wanted;
        for (int r = 0; r < code.results(); ++r) wanted.push_back(code.result(r));
        if (kind == kernel_kind::region) {
            assemble(code, wanted);
            return {{&runtime::run_interpreted_map, &runtime::no_workspace}, {}};
        }
        const runtime::several_results plan =
            runtime::plan_of_several(reductions_of(k, schedule_.kernel_words.begin()), code.slots(), wanted.data(),
                                     static_cast<int>(wanted.size()));
        std::vector<int> evaluated;
        for (int r = 0; r < plan.evaluated; ++r) evaluated.push_back(wanted[static_cast<std::size_t>(plan.place[r])]);
        assemble(code, evaluated).sums = plan;
        using of_float = runtime::interpreted_sums<float>;
        using of_double = runtime::interpreted_sums<double>;
        if (type == dtype::f64) return {{&of_double::run, &of_double::workspace}, {}};
        return {{&of_float::run, &of_float::workspace}, {}};
    }

    const registered_kernel& registered(const operation& op, dtype type) const {
        if (op.per_node_kernel)
            throw argument_error(
                std::string(op.name) +
                ": its step is compiled with the program; graphs that are made at run time do not have it");
        const registered_kernel* const found = kernel_registry::instance().find(&op, type);
        if (found == nullptr)
            throw dtype_error(std::string(op.name) + " of " + name_of(type) +
                              ": register_kernels makes it known to graphs that are made when the program runs");
        return *found;
    }

    runtime::interpreted_kernel& assemble(const region_view& code, const std::vector<int>& wanted) {
        runtime::interpreted_kernel& k = regions_.emplace_back();
        k.whole = kernel_registry::instance().find(region_key(code, schedule_.ops.begin(), wanted));
        if (k.whole == nullptr) detail::region_assembler(code, schedule_.ops.begin(), k).assemble(wanted);
        interpreted_.back() = &k;
        return k;
    }

    void look() {
        const trace& t = trace_;
        const schedule& s = schedule_;
#define TG_MEMBER(type, list, name, most) view_.name = {list.begin(), list.size()};
        TG_FROZEN_LISTS(TG_MEMBER)
#undef TG_MEMBER
        view_.functions = {functions_.data(), static_cast<int>(functions_.size())};
        view_.interpreted = {interpreted_.data(), static_cast<int>(interpreted_.size())};
    }

    trace trace_;
    schedule schedule_;
    std::vector<runtime::kernel_pair> functions_;
    std::vector<const cpu::interpreted_region*> interpreted_;
    std::deque<runtime::interpreted_kernel> regions_; // which stay where they are
    program_view view_;
};

} // namespace tapegraph::ir
