#pragma once

#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/scan_step.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

/// How a scan runs: its step is a program of its own, with a table that says where its values come from, run once per step. The
/// memory it runs in is the scan's scratch memory, planned with the program around it.

namespace tapegraph::ir {

/// Where an input of a step's program comes from (an operand of the scan, part of it) or where a result goes.
struct scan_slot {
    scan_role role;
    int operand; // -1: zeros
    int axis;    // of time
    int index;   // of the program's input, output, or variable (a carry)
};

template <int Most>
struct scan_slots {
    int count = 0;
    scan_slot at[Most]{};

    constexpr void push_back(const scan_slot& slot) {
        if (count == Most) throw "scan: a cell has more values to keep than graph/scan_kernel.hpp allows";
        at[count++] = slot;
    }
};

struct scan_table {
    scan_slots<256> inputs, outputs;
    scan_attributes attributes{};
    bool backwards = false;
};

namespace detail {

/// The step of node `Node` of a stage, with carries as variables that are updated at the end of the step.
template <class Builder, class Stage, int Node>
struct scan_program_stage {
    static constexpr void build(trace& t, schedule& s, scan_table& table) {
        static_assert(operation_binding<variable_op>::bound && operation_binding<input_op>::bound);
        constexpr auto& outer = Stage::value;
        for (int i = 0; i < outer.used.atoms; ++i) t.extents.atoms.push_back(outer.atoms[i]);
        for (int i = 0; i < outer.used.monomials; ++i) t.extents.monomials.push_back(outer.monomials[i]);
        for (int i = 0; i < outer.used.polynomials; ++i) t.extents.polynomials.push_back(outer.polynomials[i]);
        const entry scan = outer.nodes[Node];
        list<operand_info> in(scan.arguments);
        for (int k = 0; k < scan.arguments; ++k) {
            const entry& e = outer.nodes[outer.arguments[scan.first_argument + k]];
            in[k] = {e.type, shape(e.rank, outer.pool.begin() + e.dims, &t.extents)};
        }
        constexpr int words = attribute_words<step_attributes>;
        tapegraph::detail::words<words> attributes{};
        for (int i = 0; i < words; ++i) attributes.value[i] = outer.words[scan.words + i];
        table.attributes = std::bit_cast<scan_attributes>(attributes);
        table.backwards = Builder::depth % 2 != 0;
        scan_step step;
        Builder::build(t, in.begin(), table.attributes, step);
        name_values(t, step, table);
        simplify(t);
        eliminate_common_subexpressions(t);
        eliminate_dead_nodes(t);
        fuse_epilogues(t);
        eliminate_dead_nodes(t);
        hold_old_values(t);
        s = make_schedule(t);
    }

private:
    struct step_attributes {
        using attributes = scan_attributes;
    };
    struct result {
        frozen<widest> program;
        scan_table table;
    };

    // The trace's inputs, variables, updates and outputs are those of the step, in its order.
    static constexpr void name_values(trace& t, const scan_step& step, scan_table& table) {
        t.inputs.clear();
        for (const scan_input& input : step.inputs) {
            entry& e = t.nodes[input.node];
            if (input.role == scan_role::carry) {
                e.op = &record_of<variable_op>;
                e.words = t.words.push_back(t.variables.size());
                table.inputs.push_back({input.role, input.operand, 0, t.variables.size()});
                t.assignments.push_back({t.variables.size(), input.next});
                t.variables.push_back({0, "state", input.node, 0, 0, 0, false, 0});
            } else {
                e.words = t.words.push_back(t.inputs.size());
                table.inputs.push_back({input.role, input.operand, input.axis, t.inputs.size()});
                t.inputs.push_back({"", input.node, false});
            }
        }
        for (const scan_output& output : step.outputs) {
            const bool carry = output.role == scan_role::carry;
            const int index = carry ? table.inputs.at[output.node].index : t.outputs.size();
            table.outputs.push_back({output.role, -1, output.axis, index});
            if (!carry) t.outputs.push_back({"", output.node});
        }
    }

#ifdef __CUDACC__
    template <class Result>
    static constexpr Result run(Result (*finish)(const trace&, const schedule&, const scan_table&)) {
        trace t;
        schedule s;
        scan_table places;
        build(t, s, places);
        return finish(t, s, places);
    }
    static constexpr capacity used =
        run<capacity>([](const trace& t, const schedule& s, const scan_table&) { return sizes_of(t, s); });

public:
    static constexpr scan_table table =
        run<scan_table>([](const trace&, const schedule&, const scan_table& places) { return places; });
    static constexpr frozen<used> value =
        run<frozen<used>>([](const trace& t, const schedule& s, const scan_table&) { return freeze<used>(t, s); });
#else
    static constexpr result run() {
        trace t;
        schedule s;
        scan_table places;
        build(t, s, places);
        return {freeze(t, s), places};
    }
    static constexpr result wide = run();

public:
    static constexpr scan_table table = wide.table;
    static constexpr auto value = trim<wide.program.used>(wide.program);
#endif
};

} // namespace detail

/// A step's program in memory that is lent to it, run over time.
template <class = void>
class scan_program : public basic_program<> {
    using base = basic_bound_program<>;

public:
    /// Plans for the extents of a call. The plan depends on nothing else, so that the scratch memory a call was given is
    /// enough whatever else ran in between.
    scan_program(const program_view& view, const scan_table& table, const kernel_call& c)
        : basic_program<>(view, nullptr), table_(&table), symbols_of_call_(symbols(table, c)) {
        base::arena_.lend(nullptr);
        int operand = table.attributes.given();
        for (int atom = 0; atom < view.atoms.size(); ++atom)
            if ((table.attributes.symbols >> atom & 1) != 0)
                base::given_symbols_[static_cast<std::size_t>(atom)] = *c.in[operand++].as<const std::int64_t>();
        const auto value_of = [&](int atom) { return base::given_symbols_[static_cast<std::size_t>(atom)]; };
        static std::byte somewhere{};
        for (int i = 0; i < table.inputs.count; ++i) {
            const scan_slot& slot = table.inputs.at[i];
            const bool carry = slot.role == scan_role::carry;
            const int node = carry ? view.variables[slot.index].node : view.inputs[slot.index].node;
            const entry& e = view.nodes[node];
            buffer_view v;
            v.type = e.type;
            v.rank = e.rank;
            v.data = &somewhere;
            for (int axis = 0; axis < e.rank; ++axis)
                v.extents[axis] = base::table_.evaluate(view.pool[e.dims + axis], value_of);
            const bool read = base::live_.death[static_cast<std::size_t>(node)] >= 0;
            source from{v, 1, v.bytes(), 0, read};
            for (int axis = 0; axis < slot.axis; ++axis) from.rows *= v.extents[axis];
            if (from.rows > 0) from.row_bytes /= static_cast<std::size_t>(from.rows);
            if (carry)
                this->set_variable(slot.index, &somewhere);
            else if (read)
                this->set_input(slot.index, v);
            // Rows of a sequence are brought together where they do not lie so.
            if (carry || (slot.role == scan_role::sequence && from.rows != 1 && read)) {
                from.memory = before_arena_;
                before_arena_ += runtime::aligned(v.bytes());
            }
            inputs_.push_back(from);
        }
        this->bind();
    }

    bool planned_for(const kernel_call& c) const { return symbols_of_call_ == symbols(*table_, c); }
    std::size_t workspace_bytes() const { return before_arena_ + this->arena_bytes(); }

    void run_over_time(const kernel_call& c) {
        const scan_attributes& a = table_->attributes;
        const std::int64_t time = c.in[a.carries].extents[a.axis];
        auto* const memory = static_cast<std::byte*>(c.workspace);
        base::arena_.lend(memory + before_arena_);
        base::pointers_changed_ = true;
        begin(c, memory, time);
        for (std::int64_t s = 0; s < time; ++s) {
            const std::int64_t t = table_->backwards ? time - 1 - s : s;
            feed(memory, t, time);
            this->run({});
            collect(c, t, time);
        }
        finish_carries(c, time);
    }

private:
    struct source {
        buffer_view view; // of one step
        std::int64_t rows;
        std::size_t row_bytes;
        std::size_t memory; // in the scratch memory: of a carry, or of rows that are brought together
        bool read;
        const std::byte* from = nullptr; // the operand's part
    };

    // Values of the symbols of a call: with the program these give all extents but that of time.
    static std::vector<std::int64_t> symbols(const scan_table& table, const kernel_call& c) {
        std::vector<std::int64_t> values;
        for (int k = table.attributes.given(); k < table.attributes.operands(); ++k)
            values.push_back(*c.in[k].as<const std::int64_t>());
        return values;
    }

    // Carries get their first values; parts of operands are found; constants stay where they are.
    void begin(const kernel_call& c, std::byte* memory, std::int64_t time) {
        offsets_.assign(static_cast<std::size_t>(c.inputs), 0);
        for (int i = 0; i < table_->inputs.count; ++i) {
            const scan_slot& slot = table_->inputs.at[i];
            source& p = inputs_[static_cast<std::size_t>(i)];
            const std::size_t bytes = p.view.bytes();
            p.from = nullptr;
            if (slot.operand >= 0) {
                std::size_t& offset = offsets_[static_cast<std::size_t>(slot.operand)];
                p.from = c.in[slot.operand].as<const std::byte>() + offset;
                offset += slot.role == scan_role::sequence ? bytes * static_cast<std::size_t>(time) : bytes;
            }
            if (slot.role == scan_role::carry) {
                if (p.from == nullptr)
                    std::fill_n(memory + p.memory, bytes, std::byte{0});
                else if (bytes > 0)
                    std::memcpy(memory + p.memory, p.from, bytes);
                this->set_variable(slot.index, memory + p.memory);
            } else if (p.read && slot.role == scan_role::constant) {
                set_source(slot, p, p.from);
            }
        }
    }
    void feed(std::byte* memory, std::int64_t t, std::int64_t time) {
        for (int i = 0; i < table_->inputs.count; ++i) {
            const scan_slot& slot = table_->inputs.at[i];
            const source& p = inputs_[static_cast<std::size_t>(i)];
            if (slot.role != scan_role::sequence || !p.read) continue;
            if (p.rows == 1) {
                set_source(slot, p, p.from + static_cast<std::size_t>(t) * p.row_bytes);
                continue;
            }
            if (p.row_bytes > 0)
                for (std::int64_t row = 0; row < p.rows; ++row)
                    std::memcpy(memory + p.memory + static_cast<std::size_t>(row) * p.row_bytes,
                                p.from + static_cast<std::size_t>(row * time + t) * p.row_bytes, p.row_bytes);
            set_source(slot, p, memory + p.memory);
        }
    }
    void set_source(const scan_slot& slot, const source& p, const std::byte* from) {
        buffer_view v = p.view;
        v.data = const_cast<std::byte*>(from);
        this->set_input(slot.index, v);
    }
    void collect(const kernel_call& c, std::int64_t t, std::int64_t time) {
        auto* to = c.out[0].as<std::byte>();
        for (int k = 0; k < table_->outputs.count; ++k) {
            const scan_slot& slot = table_->outputs.at[k];
            if (slot.role == scan_role::carry) {
                to += carry_view(slot).bytes();
                continue;
            }
            const buffer_view& value = this->output(slot.index);
            std::int64_t rows = 1;
            for (int axis = 0; axis < slot.axis; ++axis) rows *= value.extents[axis];
            const std::size_t bytes = rows > 0 ? value.bytes() / static_cast<std::size_t>(rows) : 0;
            for (std::int64_t row = 0; row < rows && bytes > 0; ++row)
                std::memcpy(to + static_cast<std::size_t>(row * time + t) * bytes,
                            value.as<const std::byte>() + static_cast<std::size_t>(row) * bytes, bytes);
            to += value.bytes() * static_cast<std::size_t>(time);
        }
    }
    void finish_carries(const kernel_call& c, std::int64_t time) {
        auto* to = c.out[0].as<std::byte>();
        for (int k = 0; k < table_->outputs.count; ++k) {
            const scan_slot& slot = table_->outputs.at[k];
            if (slot.role != scan_role::carry) {
                to += this->output(slot.index).bytes() * static_cast<std::size_t>(time);
                continue;
            }
            const buffer_view& value = carry_view(slot);
            if (value.bytes() > 0) std::memcpy(to, value.data, value.bytes());
            to += value.bytes();
        }
    }
    const buffer_view& carry_view(const scan_slot& slot) const {
        return this->value_of(this->view().variables[slot.index].node);
    }

    const scan_table* table_;
    std::vector<std::int64_t> symbols_of_call_;
    std::vector<source> inputs_;
    std::vector<std::size_t> offsets_;
    std::size_t before_arena_ = 0;
};

/// The kernel of node `Node` of a stage. Each thread that runs it keeps the program with its plan, not its memory.
template <class Builder, class Stage, int Node>
struct scan_kernel {
    static std::size_t workspace(const kernel_call& c) { return program(c).workspace_bytes(); }
    static void run(const kernel_call& c) { program(c).run_over_time(c); }

private:
    using step = detail::scan_program_stage<Builder, Stage, Node>;
    static scan_program<>& program(const kernel_call& c) {
        static thread_local std::unique_ptr<scan_program<>> kept;
        if (kept == nullptr || !kept->planned_for(c))
            kept = std::make_unique<scan_program<>>(lowered<step>::view, step::table, c);
        return *kept;
    }
};

} // namespace tapegraph::ir
