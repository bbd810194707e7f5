#pragma once

#include <tapegraph/core/function_reference.hpp>
#include <tapegraph/graph/program.hpp>
#include <tapegraph/model/task_group.hpp>
#include <tapegraph/model/variables.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

/// Transfers of a program in parts between tasks: values that another task's part reads, results,
/// and variables. Every task makes the same transfers in the same order.

namespace tapegraph::detail {

inline std::span<const std::byte> bytes_of(const buffer_view& v) {
    return {static_cast<const std::byte*>(v.data), v.bytes()};
}
inline std::span<std::byte> bytes_of(any_tensor& t) {
    return {static_cast<std::byte*>(t.write()), t.outline_view().bytes()};
}

/// Says of a variable whether a step leaves it as it is.
using held_variables = function_reference<bool(const variable&)>;

/// The transfers of one program. A cluster implements it (cluster/task_values.hpp).
class part_transfers {
public:
    static constexpr int all_tasks = -2; ///< as `changed_by`: each task changes the variable

    virtual ~part_transfers() = default;

    virtual task_group& tasks() = 0;
    int rank() { return tasks().rank(); }

    /// Connects a value of part `part` to a part of another task. Returns the number of the
    /// transfer, which that task's parts share.
    virtual int connect(int part, int output, dtype type, int from, int to) = 0;
    /// Registers a variable of the program. `used_by`: bit r for task r; `changed_by`: the task
    /// that computes its next value, -1 for none, or `all_tasks`.
    virtual void add_variable(variable& v, std::uint64_t used_by, int changed_by) = 0;
    /// Opens the channels, once all transfers are registered, before the first run.
    virtual void open() = 0;
    /// Compares values that all tasks must agree on, before the first run.
    virtual void agree(std::uint64_t program, std::uint64_t inputs, const random_state& random) = 0;

    /// Begins a run: sends variables to the tasks whose parts read them and do not have their
    /// value.
    virtual void begin(std::int64_t step) = 0;
    /// Sends the outputs of part `part`, which `program` has computed, to the tasks that read them.
    virtual void send(int part, ir::program& program) = 0;
    /// Waits for value `number`, which this task reads.
    virtual const any_tensor& receive(int number) = 0;
    /// Waits until all sends are complete, so that results of parts may be overwritten.
    virtual void finish_sends() = 0;
    /// Sends a number, or a tensor, from the task of rank `from` to all.
    virtual void share(int from, double& number) = 0;
    virtual void share(int from, dtype type, any_tensor& t) = 0;
    /// Moves variables after their next values were computed, except for those that hold still.
    /// They go to the task that holds them, metrics' to all, and other tasks discard their values.
    /// The first time each task also frees variables that its parts do not use.
    virtual void settle(const held_variables& is_frozen) = 0;
    /// Abandons a run after an error.
    virtual void give_up() noexcept = 0;
};

} // namespace tapegraph::detail
