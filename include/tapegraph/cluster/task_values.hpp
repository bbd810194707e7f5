#pragma once

#include <tapegraph/cluster/task_messages.hpp>
#include <tapegraph/compile/placed/part_transfers.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/hash.hpp>

#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// Transfers of a program in parts as messages between the tasks of a cluster.

namespace tapegraph::detail {

class task_values final : public part_transfers {
public:
    static constexpr int most_tasks = 64; // bits of variable::held_by

    task_values(task_group& tasks, distributed::task_messages& messages);
    task_values(const task_values&) = delete;
    task_values& operator=(const task_values&) = delete;
    ~task_values() override { give_up(); }

    int rank() const { return tasks_->rank(); }
    task_group& tasks() override { return *group_; }

    int connect(int part, int output, dtype type, int from, int to) override;
    void add_variable(variable& v, std::uint64_t used_by, int changed_by) override;
    void open() override { tasks_->open_channels(static_cast<int>(values_.size()) + 1); }
    void agree(std::uint64_t program, std::uint64_t inputs, const random_state& random) override;

    void begin(std::int64_t step) override;
    void send(int part, ir::program& program) override;
    const any_tensor& receive(int number) override;
    void finish_sends() override;
    void share(int from, double& number) override;
    void share(int from, dtype type, any_tensor& t) override;
    void settle(const held_variables& is_frozen) override;
    void give_up() noexcept override;

private:
    using message = distributed::task_messages::message;
    static constexpr std::uint64_t everybody = ~std::uint64_t{0};
    /// The shape of a value, sent before its elements.
    struct value_shape {
        std::array<std::int64_t, 1 + max_rank> numbers{};

        void take(const buffer_view& v) {
            numbers[0] = v.rank;
            for (int i = 0; i < v.rank; ++i) numbers[static_cast<std::size_t>(i) + 1] = v.extents[i];
        }
        shape dims() const { return shape(static_cast<int>(numbers[0]), numbers.data() + 1); }
        std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(numbers)); }
    };
    struct value {
        int part = 0, output = 0, from = 0, to = 0;
        dtype type{};
        bool arrived = false;
        value_shape dims;
        any_tensor received;
        std::string label;
    };
    struct use {
        variable* which;
        int home;
        std::uint64_t used_by;
        int changed_by;
        std::string label;
    };

    // Channel 0 is reserved for variables.
    static int channel_of(std::size_t value) { return static_cast<int>(value) + 1; }
    int home_of(const variable& v) const { return home_of_variable(v, *tasks_); }

    void move(use& each, int from, int to);
    void finish_receives();

    task_group* group_;
    distributed::task_messages* tasks_;
    std::vector<std::unique_ptr<value>> values_;
    std::vector<use> variables_;
    std::vector<message> sends_, receives_;
    bool settled_ = false;

public:
    /// Sends the elements of a tensor from one task to all, which have one of the same shape.
    static void spread(distributed::task_messages& tasks, int from, any_tensor& t, const std::string& label);
    /// The task that holds a variable: the one named where it is created, or the chief if it is
    /// unplaced.
    static int home_of_variable(const variable& v, const distributed::task_messages& tasks);
};

/// Sends all variables to every task, until the next run; every task calls it.
void gather_variables(variable_list& variables, distributed::task_messages& tasks);

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION task_values::task_values(task_group& tasks, distributed::task_messages& messages)
    : group_(&tasks), tasks_(&messages) {
    if (messages.size() > most_tasks)
        throw argument_error("tasks: a model has parts on " + std::to_string(messages.size()) + " tasks; " +
                             std::to_string(most_tasks) + " can");
}

TG_DEFINITION int task_values::connect(int part, int output, dtype type, int from, int to) {
    for (std::size_t k = 0; k < values_.size(); ++k)
        if (values_[k]->part == part && values_[k]->output == output && values_[k]->to == to)
            return static_cast<int>(k);
    auto made = std::make_unique<value>();
    made->part = part, made->output = output, made->type = type, made->from = from, made->to = to;
    made->label = "value " + std::to_string(output) + " of part " + std::to_string(part) + ", which " +
                  tasks_->name_of(from) + " sends to " + tasks_->name_of(to);
    values_.push_back(std::move(made));
    return static_cast<int>(values_.size()) - 1;
}

TG_DEFINITION void task_values::add_variable(variable& v, std::uint64_t used_by, int changed_by) {
    variables_.push_back({&v, home_of(v), used_by, changed_by, "variable '" + v.path() + "'"});
}

TG_DEFINITION void task_values::agree(std::uint64_t program, std::uint64_t inputs, const random_state& random) {
    std::uint64_t weights = 0;
    for (const use& each : variables_)
        if (each.which->held_by() == everybody)
            weights =
                hash_values(bytes_of(each.which->data().view_on(nullptr)), hash_text(each.which->path(), weights));
    const std::array<std::pair<std::string_view, std::uint64_t>, 5> fields{
        {{"program", program}, {"seed", random.seed}, {"step", random.step}, {"weights", weights}, {"inputs", inputs}}};
    tasks_->agree(fields);
}

TG_DEFINITION void task_values::begin(std::int64_t step) {
    tasks_->set_step(step);
    for (auto& each : values_) each->arrived = false;
    for (use& each : variables_)
        for (int r = 0; r < tasks_->size(); ++r) {
            if ((each.used_by >> r & 1) == 0 || (each.which->held_by() >> r & 1) != 0) continue;
            move(each, each.home, r);
            each.which->held_by() |= std::uint64_t{1} << r;
        }
    finish_receives();
}

TG_DEFINITION void task_values::send(int part, ir::program& program) {
    for (std::size_t k = 0; k < values_.size(); ++k) {
        value& each = *values_[k];
        if (each.part != part || each.from != rank()) continue;
        const buffer_view& v = program.output(each.output); // in the CPU's memory
        each.dims.take(v);
        sends_.push_back(tasks_->send(each.to, each.dims.bytes(), channel_of(k), each.label));
        if (v.bytes() > 0) sends_.push_back(tasks_->send(each.to, bytes_of(v), channel_of(k), each.label));
    }
    tasks_->progress();
}

TG_DEFINITION const any_tensor& task_values::receive(int number) {
    value& each = *values_[static_cast<std::size_t>(number)];
    if (each.arrived) return each.received;
    const auto wait = [&](std::span<std::byte> to) {
        receives_.push_back(tasks_->receive(each.from, to, channel_of(static_cast<std::size_t>(number)), each.label));
        finish_receives();
    };
    wait(each.dims.bytes());
    const shape dims = each.dims.dims();
    if (!each.received.has_storage() || !(each.received.shape() == dims)) each.received = any_tensor(each.type, dims);
    if (each.received.size() > 0) wait(bytes_of(each.received));
    each.arrived = true;
    return each.received;
}

TG_DEFINITION void task_values::finish_sends() {
    while (!sends_.empty()) {
        tasks_->wait(sends_.back());
        sends_.pop_back();
    }
}

TG_DEFINITION void task_values::share(int from, double& number) {
    tasks_->broadcast(from, std::as_writable_bytes(std::span(&number, 1)), "result");
}

TG_DEFINITION void task_values::share(int from, dtype type, any_tensor& t) {
    value_shape dims;
    if (from == rank()) dims.take(t.outline_view());
    tasks_->broadcast(from, dims.bytes(), "shape of a result");
    if (from != rank()) t = any_tensor(type, dims.dims());
    spread(*tasks_, from, t, "result");
}

TG_DEFINITION void task_values::settle(const held_variables& is_frozen) {
    for (use& each : variables_) {
        variable& v = *each.which;
        const std::uint64_t home = std::uint64_t{1} << each.home, own = std::uint64_t{1} << rank();
        const bool changed = each.changed_by != -1 && !is_frozen(v);
        if (changed && each.changed_by == all_tasks) {
            v.held_by() = everybody;
        } else if (changed && v.metric_state()) {
            if (each.changed_by != rank()) v.restore();
            spread(*tasks_, each.changed_by, v.data(), each.label);
            v.held_by() = everybody;
        } else if (changed) {
            if (each.changed_by != each.home) move(each, each.changed_by, each.home);
            finish_receives();
            finish_sends();
            v.held_by() = home | std::uint64_t{1} << each.changed_by;
        } else if (!settled_) {
            v.held_by() &= home | each.used_by;
        }
        if ((v.held_by() & own) == 0 && v.is_here()) v.release((each.used_by & own) != 0);
    }
    settled_ = true;
}

TG_DEFINITION void task_values::give_up() noexcept {
    for (const message each : receives_) tasks_->cancel(each);
    for (const message each : sends_) tasks_->cancel(each);
    receives_.clear();
    sends_.clear();
}

TG_DEFINITION void task_values::move(use& each, int from, int to) {
    if (each.which->size() == 0 && to == rank()) each.which->restore();
    if (each.which->size() == 0) return;
    if (from == rank())
        sends_.push_back(tasks_->send(to, bytes_of(each.which->data().view_on(nullptr)), 0, each.label));
    if (to == rank()) receives_.push_back(tasks_->receive(from, bytes_of(each.which->restore()), 0, each.label));
}

TG_DEFINITION void task_values::finish_receives() {
    while (!receives_.empty()) {
        tasks_->wait(receives_.back());
        receives_.pop_back();
    }
}

TG_DEFINITION void task_values::spread(distributed::task_messages& tasks, int from, any_tensor& t,
                                       const std::string& label) {
    if (t.size() == 0) return;
    void* const at =
        from == tasks.rank() ? const_cast<void*>(t.read()) : t.overwrite(); // the sender's tensor does not change
    tasks.broadcast(from, {static_cast<std::byte*>(at), t.outline_view().bytes()}, label);
}

TG_DEFINITION int task_values::home_of_variable(const variable& v, const distributed::task_messages& tasks) {
    if (v.task().empty() || v.task().starts_with("/job:ps")) return tasks.chief();
    return tasks.rank_of(v.task());
}

TG_DEFINITION void gather_variables(variable_list& variables, distributed::task_messages& tasks) {
    for (int i = 0; i < variables.size(); ++i) {
        variable& v = variables.at(i);
        const std::uint64_t all = tasks.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << tasks.size()) - 1;
        if ((v.held_by() & all) == all) continue;
        if (!v.is_here()) v.restore();
        task_values::spread(tasks, task_values::home_of_variable(v, tasks), v.data(), "variable '" + v.path() + "'");
        v.held_by() = ~std::uint64_t{0};
    }
}

#endif

} // namespace tapegraph::detail
