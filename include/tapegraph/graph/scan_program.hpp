#pragma once

#include <tapegraph/graph/bound_program.hpp>
#include <tapegraph/graph/placement_log.hpp>
#include <tapegraph/graph/scan_step.hpp>
#include <tapegraph/runtime/row_copies.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

/// Runs a scan: its step is a program of its own, with a table of the sources of its values, run
/// once per step. It runs in the scan's scratch memory, which is planned with the enclosing
/// program.

namespace tapegraph::ir {

/// The source of an input of a step's program (an operand of the scan, or part of it) or the
/// destination of a result.
struct scan_slot {
    scan_role role;
    int operand; // -1: zeros
    int axis;    // the time axis
    int index;   // index of the program's input, output, or variable (a carry)
};

template <int Most>
struct scan_slots {
    int count = 0;
    scan_slot at[Most]{};

    constexpr void push_back(const scan_slot& slot) {
        if (count == Most) {
            constexpr const char* text = "scan: a cell has more values to keep than graph/scan_program.hpp allows";
            if (!std::is_constant_evaluated()) throw argument_error(text);
            throw text; // which a compiler shows
        }
        at[count++] = slot;
    }
};

struct scan_table {
    scan_slots<256> inputs, outputs;
    scan_attributes attributes{};
    bool backwards = false;
};

/// A step's program in borrowed memory, run over time. On a device all its work is launched into
/// the call's stream, so that the enclosing program can be captured; it owns no device memory.
template <class Backend = runtime::backend>
class scan_program : public bound_program {
    using base = bound_program;

public:
    /// Plans for the extents of a call, on a device (null: the CPU). The plan depends on nothing
    /// else, so the scratch memory of a call suffices whatever else ran in between.
    scan_program(const program_view& view, const scan_table& table, const kernel_call& c,
                 runtime::device_runtime* device)
        : base(view, device, true), table_(&table) {
        base::arena_.use(nullptr);
        for (int atom = 0; atom < view.atoms.size(); ++atom)
            if (has_symbol(atom)) base::given_symbols_[static_cast<std::size_t>(atom)] = c.symbols[atom];
        const auto value_of = [&](int atom) { return base::given_symbols_[static_cast<std::size_t>(atom)]; };
        static std::byte somewhere{};
        // Whether the next part of an operand is aligned
        std::vector<bool> aligned(static_cast<std::size_t>(c.inputs), true);
        for (int i = 0; i < table.inputs.count; ++i) {
            const scan_slot& slot = table.inputs.at[i];
            const bool carry = slot.role == scan_role::carry;
            const int id = carry ? view.variables[slot.index].node : view.inputs[slot.index].node;
            const entry& e = view.nodes[id];
            source from;
            from.view = base::values_[static_cast<std::size_t>(id)];
            from.view.data = &somewhere;
            for (int axis = 0; axis < e.rank; ++axis)
                from.view.extents[axis] = base::table_.evaluate(view.pool[e.dims + axis], value_of);
            from.read = base::live_.death[static_cast<std::size_t>(id)] >= 0;
            for (int axis = 0; axis < slot.axis; ++axis) from.rows *= from.view.extents[axis];
            from.row_bytes = from.view.bytes();
            if (from.rows > 0) from.row_bytes /= static_cast<std::size_t>(from.rows);
            if (carry)
                this->set_variable(slot.index, &somewhere);
            else if (from.read)
                this->set_input(slot.index, from.view);
            from.copied = !stays_in_place(slot, from, aligned) && (carry || from.read);
            if (from.copied) from.memory = take(from.view.bytes());
            inputs_.push_back(from);
        }
        this->bind();
        if (device != nullptr) find_numbers();
    }

    bool planned_for(const kernel_call& c, const runtime::device_runtime* device) const {
        bool same = base::runs_on_ == device;
        for (int atom = 0; same && atom < base::view_->atoms.size(); ++atom)
            same = !has_symbol(atom) || base::given_symbols_[static_cast<std::size_t>(atom)] == c.symbols[atom];
        return same;
    }
    std::size_t workspace_bytes() const { return before_arena_ + this->arena_bytes(); }

    void run_over_time(const kernel_call& c) {
        const scan_attributes& a = table_->attributes;
        const std::int64_t time = c.in[a.carries].extents[a.axis];
        auto* const memory = static_cast<std::byte*>(c.workspace);
        base::arena_.use(memory + before_arena_);
        base::pointers_changed_ = true;
        place_numbers(c, memory);
        const std::int64_t first_draw = c.attributes[ordinal_word], draws = draws_of_step();
        begin(c, memory, time);
        log_placement();
        for (std::int64_t s = 0; s < time; ++s) {
            const std::int64_t t = table_->backwards ? time - 1 - s : s;
            feed(c, memory, t, time);
            this->bind();
            base::draws_.number(first_draw + t * draws, c.random);
            for (const kernel_step& step : base::steps_) step.run(step.call);
            // graph/passes/snapshot_variables.hpp ensures that no copy reads memory that another
            // one writes.
            for (const copy& update : base::copies_) moves_.add(c, update.to, update.from, update.bytes);
            collect(c, t, time);
            moves_.launch(c);
        }
        finish_carries(c, time);
    }

private:
    struct source {
        buffer_view view; // of one step
        std::int64_t rows = 1;
        std::size_t row_bytes = 0;
        bool read = false, copied = false;
        std::size_t memory = 0;          // in the scratch memory: that of a carry, or of a copied input
        const std::byte* from = nullptr; // the operand's part
    };

    static constexpr int ordinal_word = offsetof(scan_attributes, ordinal) / sizeof(std::int64_t);

    std::int64_t draws_of_step() const {
        return base::table_.evaluate(table_->attributes.draws,
                                     [&](int atom) { return base::given_symbols_[static_cast<std::size_t>(atom)]; });
    }
    bool has_symbol(int atom) const { return (table_->attributes.symbols >> atom & 1) != 0; }
    std::size_t take(std::size_t bytes) {
        const std::size_t at = before_arena_;
        before_arena_ += runtime::aligned(bytes);
        return at;
    }

    // Whether a step can read its input in place in the operand. Rows of a sequence that are not
    // contiguous are gathered first. On a device inputs are also copied when their addresses are
    // not aligned as in any other program.
    bool stays_in_place(const scan_slot& slot, const source& s, std::vector<bool>& aligned) const {
        if (slot.operand < 0) return false;
        const bool sequence = slot.role == scan_role::sequence, whole = s.view.bytes() % runtime::alignment == 0;
        const auto operand = static_cast<std::size_t>(slot.operand);
        const bool begins_aligned = aligned[operand];
        aligned[operand] = begins_aligned && whole;
        if (slot.role == scan_role::carry || (sequence && s.rows != 1)) return false;
        return base::runs_on_ == nullptr || (begins_aligned && (whole || !sequence));
    }

    // Finds the numbers that a device's kernels read from memory. Every run writes them into the
    // scratch memory again, because others use it between runs.
    void find_numbers() {
        for (int id = 0; id < base::view_->nodes.size(); ++id) {
            const entry& e = base::view_->nodes[id];
            const bool number = e.is(descriptor_of<constant_op>) || e.is(descriptor_of<extent_op>);
            if (!number || base::live_.death[static_cast<std::size_t>(id)] < 0) continue;
            numbers_of_.push_back(id);
            number_words_.push_back(base::formula_numbers_.word(id));
        }
        numbers_at_ = take(number_words_.size() * sizeof(std::uint64_t));
    }
    void place_numbers([[maybe_unused]] const kernel_call& c, [[maybe_unused]] std::byte* memory) {
        if constexpr (runtime::has_backend) {
            if (numbers_of_.empty()) return;
            for (std::size_t k = 0; k < numbers_of_.size(); ++k)
                base::values_[static_cast<std::size_t>(numbers_of_[k])].data =
                    memory + numbers_at_ + k * sizeof(std::uint64_t);
            Backend::store_words(c, memory + numbers_at_, number_words_.data(), number_words_.size());
        }
    }

    // Sets carries to their initial values and finds the parts of operands; constants stay in
    // place.
    void begin(const kernel_call& c, std::byte* memory, std::int64_t time) {
        offsets_.assign(static_cast<std::size_t>(c.inputs), 0);
        for (int i = 0; i < table_->inputs.count; ++i) {
            const scan_slot& slot = table_->inputs.at[i];
            source& p = inputs_[static_cast<std::size_t>(i)];
            const std::size_t bytes = p.view.bytes();
            const bool sequence = slot.role == scan_role::sequence;
            p.from = nullptr;
            if (slot.operand >= 0) {
                std::size_t& offset = offsets_[static_cast<std::size_t>(slot.operand)];
                p.from = c.in[slot.operand].as<const std::byte>() + offset;
                offset += sequence ? bytes * static_cast<std::size_t>(time) : bytes;
            }
            if (p.copied && !sequence) moves_.add(c, memory + p.memory, p.from, bytes);
            if (slot.role == scan_role::carry)
                this->set_variable(slot.index, memory + p.memory);
            else if (p.copied)
                set_source(slot, p, memory + p.memory);
            else if (p.read && !sequence)
                set_source(slot, p, p.from);
        }
        moves_.launch(c);
    }
    void feed(const kernel_call& c, std::byte* memory, std::int64_t t, std::int64_t time) {
        for (int i = 0; i < table_->inputs.count; ++i) {
            const scan_slot& slot = table_->inputs.at[i];
            const source& p = inputs_[static_cast<std::size_t>(i)];
            if (slot.role != scan_role::sequence || !p.read) continue;
            const std::byte* const from = p.from + static_cast<std::size_t>(t) * p.row_bytes;
            if (p.copied)
                moves_.add(c, {memory + p.memory, from, p.rows, p.row_bytes, p.row_bytes,
                               p.row_bytes * static_cast<std::size_t>(time)});
            else
                set_source(slot, p, from);
        }
        moves_.launch(c);
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
            const buffer_view& value = output(slot);
            std::int64_t rows = 1;
            for (int axis = 0; axis < slot.axis; ++axis) rows *= value.extents[axis];
            const std::size_t bytes = rows > 0 ? value.bytes() / static_cast<std::size_t>(rows) : 0;
            moves_.add(c, {to + static_cast<std::size_t>(t) * bytes, value.data, rows, bytes,
                           bytes * static_cast<std::size_t>(time), bytes});
            to += value.bytes() * static_cast<std::size_t>(time);
        }
    }
    void finish_carries(const kernel_call& c, std::int64_t time) {
        auto* to = c.out[0].as<std::byte>();
        for (int k = 0; k < table_->outputs.count; ++k) {
            const scan_slot& slot = table_->outputs.at[k];
            if (slot.role != scan_role::carry) {
                to += output(slot).bytes() * static_cast<std::size_t>(time);
                continue;
            }
            const buffer_view& value = carry_view(slot);
            moves_.add(c, to, value.data, value.bytes());
            to += value.bytes();
        }
        moves_.launch(c);
    }
    const buffer_view& output(const scan_slot& slot) const {
        return base::outputs_[static_cast<std::size_t>(slot.index)];
    }
    const buffer_view& carry_view(const scan_slot& slot) const {
        return this->value_of(this->view().variables[slot.index].node);
    }
    void log_placement() {
        if (logged_ || !runtime::placement_is_logged()) return;
        detail::log_placement_of(*this);
        logged_ = true;
    }

    const scan_table* table_;
    std::vector<source> inputs_;
    std::vector<std::size_t> offsets_;
    std::size_t before_arena_ = 0; // bytes of scratch memory
    runtime::row_copies<Backend> moves_;
    std::vector<int> numbers_of_; // nodes
    std::vector<std::uint64_t> number_words_;
    std::size_t numbers_at_ = 0;
    bool logged_ = false;
};

} // namespace tapegraph::ir
