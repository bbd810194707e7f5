#pragma once

#include <tapegraph/graph/kept_functions.hpp>
#include <tapegraph/graph/model_trace.hpp>
#include <tapegraph/graph/scan_step.hpp>

#include <memory>
#include <utility>
#include <vector>

/// Cells of scans that exist only at run time: with members, and with values of the model around
/// them. Such a cell is called once, in the trace of the model; its nodes are then moved into a
/// trace of their own, in which values that it captured are further constants of the scan.

namespace tapegraph::ir {

/// The nodes of a cell, as a step appends them to an empty trace.
struct recorded_cell {
    trace nodes;
    scan_step step;
};

/// The recorded cells of a traced program and of the parts that are cut out of it, and the functions
/// that they keep.
struct scan_cells {
    std::vector<std::unique_ptr<const recorded_cell>> all;
    kept_functions functions;
    /// Those of the program that this thread makes, and its trace; null: none.
    static inline thread_local scan_cells* current = nullptr;
    static inline thread_local model_trace* model = nullptr;
};

/// Makes cells and their program's trace the current ones while it lives.
class scan_cells_now {
public:
    scan_cells_now(scan_cells& cells, model_trace& model)
        : before_(std::exchange(scan_cells::current, &cells)),
          model_before_(std::exchange(scan_cells::model, &model)),
          functions_before_(std::exchange(kept_functions::current, &cells.functions)) {}
    scan_cells_now(const scan_cells_now&) = delete;
    scan_cells_now& operator=(const scan_cells_now&) = delete;
    ~scan_cells_now() {
        scan_cells::current = before_;
        scan_cells::model = model_before_;
        kept_functions::current = functions_before_;
    }

private:
    scan_cells* before_;
    model_trace* model_before_;
    kept_functions* functions_before_;
};

/// Whether a node is an input of a cell that is being recorded, or what is left of its nodes afterwards:
/// none of the model's inputs. Its number marks it.
inline bool is_input_of_cell(const trace& t, int id) {
    return t.is(id, descriptor_of<input_op>) && t.words_of(id)[0] == -1 - id;
}

/// Records a cell in the trace of a model, or in that of a step of another scan, which has no model.
class cell_recording {
public:
    explicit cell_recording(trace& t)
        : t_(t),
          model_(&t == scan_cells::model ? scan_cells::model : nullptr),
          first_(t.nodes.size()),
          named_(model_ != nullptr ? model_->named.size() : 0),
          results_(model_ != nullptr ? model_->results.size() : 0),
          effects_(count_of_effects()),
          functions_(count_of_functions()),
          ordinals_(t.ordinals),
          differentiated_(t.differentiated) {}

    int first_node() const { return first_; }
    /// Appends an input of the cell.
    int input(dtype type, const shape& dims) {
        return t_.append(descriptor_of<input_op>, type, dims.rank(), t_.store(dims), nullptr, 0,
                         t_.words.push_back(-1 - t_.nodes.size()));
    }
    /// Moves the cell's nodes out of the trace and keeps them. `step` names them by their places in
    /// the trace; the operands that follow `args` are appended: what the cell captured.
    void finish(const scan_step& step, scan_attributes& a, list<int>& args);

private:
    int count_of_effects() const {
        if (model_ == nullptr) return t_.assignments.size();
        return t_.assignments.size() + model_->added_losses.size() + model_->row_uses.size() +
               model_->minimizations.size() + model_->trainings;
    }
    static std::size_t count_of_functions() {
        return scan_cells::current != nullptr ? scan_cells::current->functions.all.size() : 0;
    }
    bool is_own_input(int id) const { return is_input_of_cell(t_, id); }
    bool is_number(int id) const {
        return t_.is(id, descriptor_of<constant_op>) || t_.is(id, descriptor_of<extent_op>);
    }
    /// Whether a node is the cell's own, or a number, which is copied.
    bool is_own(int id) const {
        const bool leaf = t_.nodes[id].op->kind == operation_kind::leaf;
        return is_number(id) || (id >= first_ && (!leaf || is_own_input(id)));
    }
    // Where the cell computes something: scan itself does not know the line that calls it.
    int line_of_cell() const {
        for (int id = first_; id < t_.nodes.size(); ++id)
            if (t_.nodes[id].op->kind != operation_kind::leaf) return t_.nodes[id].line;
        return t_.line;
    }
    list<int> needed_nodes(const scan_step& step) const;
    void copy(int id, trace& to, const list<int>& made, int group) const;
    std::int64_t word_in_cell(int id, int word, const list<int>& made) const;

    trace& t_;
    model_trace* model_;
    int first_, named_, results_, effects_;
    std::size_t functions_;
    std::int64_t ordinals_;
    bool differentiated_;
};

/// Which nodes of the trace the results of a step need: 1 its own ones, 2 captured ones.
inline list<int> cell_recording::needed_nodes(const scan_step& step) const {
    list<int> needed(t_.nodes.size(), 0);
    for (const scan_input& input : step.inputs)
        if (input.next >= 0) needed[input.next] = 1;
    for (const scan_output& output : step.outputs)
        if (output.role == scan_role::sequence) needed[output.node] = 1;
    for (int id = needed.size() - 1; id >= 0; --id) {
        if (needed[id] == 0) continue;
        needed[id] = is_own(id) ? 1 : 2;
        for (int k = 0; needed[id] == 1 && k < t_.nodes[id].arguments; ++k) needed[t_.argument(id, k)] = 1;
    }
    return needed;
}

/// An attribute as the cell's own trace has it: draws are counted from the cell's beginning, and a
/// checkpoint's first node is one of that trace.
inline std::int64_t cell_recording::word_in_cell(int id, int word, const list<int>& made) const {
    const std::int64_t value = t_.words_of(id)[word];
    if (t_.nodes[id].op->ordinal_word == word && value != -1)
        return (extent(value, &t_.extents) - extent(ordinals_, &t_.extents)).value;
    if (!t_.is(id, descriptor_of<checkpoint_op>)) return value;
    int first = static_cast<int>(value);
    while (first < id && (made[first] < 0 || !is_own(first) || is_own_input(first))) ++first;
    return made[first < id ? first : t_.argument(id, 0)];
}

inline void cell_recording::copy(int id, trace& to, const list<int>& made, int group) const {
    entry e = t_.nodes[id];
    const bool leaf = e.op->kind == operation_kind::leaf;
    const int first_argument = to.arguments.size(), dims = to.pool.size(), words = to.words.size();
    for (int k = 0; k < e.arguments; ++k) to.arguments.push_back(made[t_.argument(id, k)]);
    for (int i = 0; i < e.rank; ++i) to.pool.push_back(t_.pool[e.dims + i]);
    for (int i = 0; i < (leaf ? 1 : e.op->words); ++i) to.words.push_back(word_in_cell(id, i, made));
    e.first_argument = first_argument, e.dims = dims, e.words = words, e.group = group;
    e.scope = e.place = e.task = 0; // a step is computed where its scan is
    to.nodes.push_back(e);
}

inline void cell_recording::finish(const scan_step& step, scan_attributes& a, list<int>& args) {
    if (scan_cells::current == nullptr)
        t_.fail("scan: a cell with members or captures needs a graph that is made when the program runs");
    const int line = std::exchange(t_.line, line_of_cell());
    if (count_of_effects() != effects_)
        t_.fail("scan: a cell assigns no variables, minimizes nothing, adds no losses and gathers no rows");
    if (count_of_functions() != functions_) // it may have captured nodes, which are not those of the step
        t_.fail("scan: in a cell that captures, the backward function of custom_gradient cannot: pass what it needs as "
                "an argument of both functions");
    t_.line = line;
    if (t_.error.what != nullptr) return;
    auto kept = std::make_unique<recorded_cell>();
    trace& to = kept->nodes;
    to.extents = t_.extents;
    to.lines = t_.lines;
    to.ordinals = (extent(t_.ordinals, &t_.extents) - extent(ordinals_, &t_.extents)).value;
    t_.ordinals = ordinals_; // the scan draws, as often as it has steps
    list<int> made(t_.nodes.size(), -1);
    const auto as_input = [&](int id) { made[id] = to.input("", t_.nodes[id].type, t_.dims(id)); };
    for (scan_input input : step.inputs) {
        as_input(input.node);
        input.node = made[input.node];
        kept->step.inputs.push_back(input);
    }
    const list<int> needed = needed_nodes(step);
    for (int id = 0; id < needed.size(); ++id) { // inputs first, so that the nodes of a group stay together
        if (needed[id] != 2) continue;
        as_input(id);
        kept->step.inputs.push_back({scan_role::constant, made[id], args.push_back(id), static_cast<int>(a.axis), -1});
        ++a.constants;
    }
    for (int id = 0, group = -1; id < needed.size(); ++id) {
        if (needed[id] != 1 || made[id] >= 0) continue;
        if (t_.nodes[id].group != group) group = t_.nodes[id].group, ++to.groups;
        made[id] = to.nodes.size();
        copy(id, to, made, to.groups - 1);
    }
    for (int k = 0; k < step.inputs.size(); ++k)
        if (step.inputs[k].next >= 0) kept->step.inputs[k].next = made[step.inputs[k].next];
    for (scan_output output : step.outputs) {
        if (output.role == scan_role::sequence) output.node = made[output.node];
        kept->step.outputs.push_back(output);
    }
    kept->step.where = step.where;
    // What is left are inputs that nothing reads. The model's own leaves stay.
    for (int id = first_; id < t_.nodes.size(); ++id) {
        entry& e = t_.nodes[id];
        if (e.op->kind == operation_kind::leaf) continue;
        e.op = &descriptor_of<input_op>;
        e.arguments = 0;
        e.sealed = true;
        e.words = t_.words.push_back(-1 - id);
    }
    if (model_ != nullptr) {
        model_->named.resize(named_);
        model_->results.resize(results_);
    }
    t_.differentiated = differentiated_;
    scan_cells::current->all.push_back(std::move(kept));
    a.cell = static_cast<std::int64_t>(scan_cells::current->all.size());
}

/// Refuses a value of a recorded cell that a reference carried out of it: what is left of it in the
/// trace is an input that nobody feeds.
inline void refuse_values_of_cells(model_trace& t) {
    const auto is_left = [&](int id) { return is_input_of_cell(t, id); };
    const auto refuse = [&](int line) {
        t.line = line;
        t.fail("scan: a value of a cell is used outside of it: return it as the cell's state or output");
    };
    for (int id = 0; id < t.nodes.size(); ++id)
        for (int k = 0; k < t.nodes[id].arguments; ++k)
            if (is_left(t.argument(id, k))) return refuse(t.nodes[id].line);
    for (const output_entry& output : t.outputs)
        if (is_left(output.node)) return refuse(t.nodes[output.node].line);
    for (const assignment_entry& update : t.assignments)
        if (is_left(update.node)) return refuse(t.nodes[update.node].line);
}

/// The builder of all recorded cells.
struct recorded_scan_cell {
    static constexpr int depth = 0;

    static void build(trace& t, const operand_info*, const scan_attributes& a, scan_step& step) {
        if (scan_cells::current == nullptr)
            return t.fail("scan: a cell with members or captures needs a graph that is made when the program runs");
        const recorded_cell& cell = *scan_cells::current->all[static_cast<std::size_t>(a.cell) - 1];
        t.nodes = cell.nodes.nodes;
        t.arguments = cell.nodes.arguments;
        t.pool = cell.nodes.pool;
        t.words = cell.nodes.words;
        t.lines = cell.nodes.lines;
        t.inputs = cell.nodes.inputs;
        t.groups = cell.nodes.groups;
        t.ordinals = cell.nodes.ordinals;
        const std::source_location where = step.where;
        step = cell.step;
        step.where = where;
    }
};

} // namespace tapegraph::ir
