#pragma once

#include <tapegraph/compile/placed/traced_parts.hpp>
#include <tapegraph/compile/traced_calls.hpp>
#include <tapegraph/model/outputs.hpp>
#include <tapegraph/session/session.hpp>
#include <tapegraph/train/tensor_columns.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

/// Sessions whose graphs are made at run time. Models are callables, and names of fetches are data.

namespace tapegraph {

/// What a run gives: the fetches that have values, by name or number. If there is one, it converts
/// to a tensor and, of one element, to a number.
class session_results : public any_outputs {
public:
    using any_outputs::any_outputs;
    using any_outputs::operator[];
    // An exact match: otherwise a text might be subscripted by the number to which results convert.
    /// A fetched value by its name. Throws argument_error, which lists the names, for one that was not fetched.
    const any_tensor& operator[](const char* name) const { return (*this)[std::string_view(name)]; }
    /// Throws argument_error if there are several, and shape_error for several elements.
    template <arithmetic T>
    operator T() const { // NOLINT: implicit on purpose
        if (only().size() != 1)
            throw shape_error("session: a tensor of shape " + to_string(only().shape()) + " is not a number");
        if (only().type() == dtype::i64) return static_cast<T>(*static_cast<const std::int64_t*>(only().read()));
        const any_tensor wide = only().type() == dtype::f64 ? only() : detail::fed_as(only(), dtype::f64);
        return static_cast<T>(*static_cast<const double*>(wide.read()));
    }
};

namespace detail {

/// Gives builders names that exist only at run time: those of fetches, and those of given values.
/// Only the thread that traces reads them, while it traces.
template <bool Given>
struct names_at_run_time {
    static inline thread_local std::span<const std::string_view> all;
    static inline thread_local int count = 0;
    static void set(std::span<const std::string_view> names) {
        all = names;
        count = static_cast<int>(names.size());
    }
};

template <class F>
struct optimizers_of_session<at_run_time<F>> {
    static inline thread_local const table_type<at_run_time<F>>* current = nullptr;
    static const table_type<at_run_time<F>>& get() { return *current; }
};

/// One set of fetches and given values, with its programs.
struct traced_run {
    std::vector<std::string> fetches, given; ///< the trace names its inputs and outputs by them
    traced_parts parts;
    std::vector<bool> training; ///< per optimizer of the model, whether the run takes its step
    bool trains = false, initializes = false;

    bool is(std::span<const std::string_view> wanted, std::span<const feed> replaced) const {
        const auto named = [](const std::string& name, const feed& f) { return name == f.name; };
        return std::equal(fetches.begin(), fetches.end(), wanted.begin(), wanted.end()) &&
               std::equal(given.begin(), given.end(), replaced.begin(), replaced.end(), named);
    }
};

} // namespace detail

/// A session whose model is a callable, which is copied: `make_session<traced>(model)`. Each set of
/// fetches calls it once more, with a scope, when it is first run. Use it from one thread at a time.
template <class Model>
class session<Model, traced> : public detail::session_files<session<Model, traced>> {
    using base = detail::session_files<session>;
    using model = detail::at_run_time<Model>;
    using fetch_names = detail::names_at_run_time<false>;
    using given_names = detail::names_at_run_time<true>;
    using table = detail::table_type<model>;
    friend base;

public:
    /// Computes on the device of this thread, or on another. Throws shape_error for a model whose
    /// parts do not fit together.
    explicit session(const Model& m, std::uint64_t seed = 0) : session(m, seed, runtime::current_runtime(), nullptr) {}
    session(const Model& m, device where, std::uint64_t seed = 0)
        : session(m, seed, runtime::runtime_for(where), nullptr) {}
    /// One of several tasks of a cluster, as for `session<model>`.
    session(const Model& m, task_group& tasks, std::uint64_t seed = 0)
        : session(m, seed, runtime::current_runtime(), &tasks) {}

    /// Runs the fetches once: `run({"loss", "train"}, {{"x", x}}, {{"h", replaced}})`. `feeds` are
    /// values of placeholders, `given` values that replace computed ones. Returns those of the
    /// fetches that have values; operations change variables after everything else. Throws
    /// shape_error for a name that the model lacks and for parts that do not fit together,
    /// otherwise as a session in graph mode does.
    session_results run(std::initializer_list<std::string_view> names, std::initializer_list<feed> feeds = {},
                        std::initializer_list<feed> given = {}) {
        return run(std::span(names.begin(), names.size()), std::span(feeds.begin(), feeds.size()),
                   std::span(given.begin(), given.size()));
    }
    /// The same for one fetch.
    template <std::convertible_to<std::string_view> Name>
    session_results run(const Name& name, std::initializer_list<feed> feeds = {},
                        std::initializer_list<feed> given = {}) {
        return run({std::string_view(name)}, feeds, given);
    }
    /// The same for names and values that were collected when the program ran.
    session_results run(std::span<const std::string_view> names, std::span<const feed> feeds,
                        std::span<const feed> given = {}) {
        this->check_open();
        detail::traced_run& r = run_of(names, given);
        std::vector<const feed*> values;
        for (const feed& each : feeds) values.push_back(&each);
        for (const feed& each : given) values.push_back(&each);
        const std::span<const detail::compiled_part> parts = r.parts.all();
        detail::session_program& p = this->program_of(parts.data(), static_cast<int>(parts.size()));
        if (r.initializes) this->initialize_all();
        step(p, r, values);
        std::vector<std::string> found;
        std::vector<any_tensor> results;
        for (const ir::output_entry& output : r.parts.view().outputs) {
            found.emplace_back(output.name);
            results.push_back(result(p, results.size(), values));
        }
        this->finish(p, r.trains);
        return {std::move(found), std::move(results)};
    }

    /// The optimizer of a fetch of minimize, by its type; its numbers may change between runs.
    /// `which` counts those of one type in a group. Throws argument_error if there is none.
    template <class Optimizer>
    Optimizer& optimizer(std::string_view fetch, int which = 0) {
        std::size_t at = table::count;
        Optimizer* found = nullptr;
        each_optimizer([&]<class Each>(Each&, std::size_t i) {
            if (std::is_same_v<Each, Optimizer> && at == table::count && table_.names[i] == fetch && which-- == 0)
                at = table_.first_of(i);
        });
        each_optimizer([&]<class Each>(Each& optimizer, std::size_t i) {
            if constexpr (std::is_same_v<Each, Optimizer>)
                if (i == at) found = &optimizer;
        });
        if (found == nullptr) no_optimizer(fetch);
        return *found;
    }
    /// The number of steps that the optimizer of a fetch has taken; `which` counts those of a
    /// group.
    std::int64_t iterations(std::string_view fetch, int which = 0) {
        for (std::size_t i = 0; i < table::count; ++i)
            if (table_.names[i] == fetch && which-- == 0)
                return static_cast<std::int64_t>(
                    *static_cast<const double*>(this->iterations_of(table_.trainings[i]).data().read()));
        no_optimizer(fetch);
    }

    /// The program of a set of fetches, for tg::explain and tg::to_dot; of parts on several devices
    /// the trace before they are made.
    const ir::program_view& view(std::initializer_list<std::string_view> names) {
        return run_of(std::span(names.begin(), names.size()), {}).parts.view();
    }

private:
    struct operations {
        table optimizers;
        std::vector<std::string_view> initializing;
    };
    session(const Model& m, std::uint64_t seed, runtime::device_runtime* where, task_group* tasks)
        : session(std::make_unique<Model>(m), operations_in(m), seed, where, tasks) {}
    session(std::unique_ptr<Model> m, operations found, std::uint64_t seed, runtime::device_runtime* where,
            task_group* tasks)
        : base(seed, where, &first_state, tasks),
          model_(std::move(m)),
          table_(found.optimizers),
          initializing_(std::move(found.initializing)) {
        alone_ = traced_for<detail::fetch_trace<model, fetch_names, given_names, true>>({}, {});
    }

    // Calls the model for what its fetches are.
    static operations operations_in(const Model& m) {
        const detail::traced_now<Model> now(m);
        ir::model_trace t;
        t.training = false;
        const auto result = model{}(graph_scope(&t, 0));
        return std::apply(
            [](const auto&... item) {
                operations found{detail::joined_tables(detail::optimizers_of(item)...), {}};
                ((detail::initializes(&item.value) ? found.initializing.push_back(item.name) : void()), ...);
                return found;
            },
            result.items);
    }

    const ir::model_view& variables_made_by_model() { return alone_->view(); }
    void make_everything() {
        this->variables();
        if constexpr (table::count > 0) {
            using whole = detail::session_update_trace<model, detail::all_operations, given_names>;
            if (!everything_) everything_ = traced_for<whole>({}, {});
            this->make_variables(everything_->view());
            for (const int training : table_.trainings) this->iterations_of(training);
        }
    }

    template <class Builder>
    std::unique_ptr<ir::traced_program> traced_for(std::span<const std::string_view> fetches,
                                                   std::span<const std::string_view> given) {
        const detail::traced_now<Model> now(*model_);
        detail::optimizers_of_session<model>::current = &table_;
        fetch_names::set(fetches);
        given_names::set(given);
        return ir::traced_program::of<Builder>(false);
    }

    detail::traced_run& run_of(std::span<const std::string_view> names, std::span<const feed> given) {
        for (const auto& each : runs_)
            if (each->is(names, given)) return *each;
        auto made = std::make_unique<detail::traced_run>();
        made->fetches.assign(names.begin(), names.end());
        for (const feed& each : given) made->given.emplace_back(each.name);
        const std::vector<std::string_view> fetches(made->fetches.begin(), made->fetches.end());
        const std::vector<std::string_view> replaced(made->given.begin(), made->given.end());
        const auto wanted = [&](std::string_view name) {
            return std::find(fetches.begin(), fetches.end(), name) != fetches.end();
        };
        for (std::size_t i = 0; i < table::count; ++i) {
            made->training.push_back(wanted(table_.names[i]));
            made->trains = made->trains || made->training.back();
        }
        using alone = detail::fetch_trace<model, fetch_names, given_names, true>;
        using training = detail::session_update_trace<model, fetch_names, given_names>;
        made->parts = detail::traced_parts(made->trains ? traced_for<training>(fetches, replaced)
                                                        : traced_for<alone>(fetches, replaced));
        made->initializes = std::any_of(initializing_.begin(), initializing_.end(), wanted);
        return *runs_.emplace_back(std::move(made));
    }

    // Executes the program; counts the steps of its optimizers only if it succeeds.
    void step(detail::session_program& p, const detail::traced_run& r, const std::vector<const feed*>& values) {
        std::vector<double> numbers;
        std::vector<double*> counts;
        each_optimizer([&](auto& optimizer, std::size_t i) {
            if (table_.first_of(i) != i || !takes(r, i)) return;
            counts.push_back(static_cast<double*>(this->iterations_of(table_.trainings[i]).own_data()));
            for (const double n : optimizer.numbers(static_cast<std::int64_t>(*counts.back()) + 1))
                numbers.push_back(n);
        });
        this->execute(p, values, r.trains ? numbers.data() : nullptr, static_cast<int>(numbers.size()));
        for (double* const count : counts) *count += 1;
    }
    // Whether a run takes the steps of a call of minimize, under whichever name.
    bool takes(const detail::traced_run& r, std::size_t first) const {
        for (std::size_t i = first; i < table::count; ++i)
            if (table_.trainings[i] == table_.trainings[first] && r.training[i]) return true;
        return false;
    }

    any_tensor result(detail::session_program& p, std::size_t index, const std::vector<const feed*>& values) {
        any_tensor value = detail::result_of_parts(p, index);
        if (is_floating(value.type()) && detail::tape_storage::instance().recording()) {
            std::vector<const any_tensor*> fed;
            for (const feed* each : values) fed.push_back(&each->value);
            detail::refuse_derivative(value, fed, detail::no_gradient_of_runs);
        }
        return value;
    }

    template <class F>
    void each_optimizer(const F& f) {
        std::size_t i = 0;
        std::apply([&](auto&... each) { (f(each, i++), ...); }, table_.optimizers);
    }
    [[noreturn]] void no_optimizer(std::string_view fetch) const {
        std::string text = "session: the fetch '" + std::string(fetch) + "' has no such optimizer";
        for (std::size_t i = 0; i < table::count; ++i)
            text.append(i == 0 ? "; there are those of '" : ", '").append(table_.names[i]).append("'");
        throw argument_error(text);
    }
    static double first_state(const detail::session_base& self, int which, std::string_view name) {
        double value = 0;
        auto& own = const_cast<session&>(static_cast<const session&>(self));
        own.each_optimizer([&](auto& optimizer, std::size_t i) {
            if constexpr (requires { optimizer.first_value(name); })
                if (own.table_.first_of(i) == i && own.table_.trainings[i] == which)
                    value = optimizer.first_value(name);
        });
        return value;
    }

    std::unique_ptr<Model> model_; // held by pointer, because a lambda is not assigned to
    table table_;
    std::vector<std::string_view> initializing_; // fetches of initialize_variables
    std::unique_ptr<ir::traced_program> alone_, everything_;
    std::vector<std::unique_ptr<detail::traced_run>> runs_;
};

/// Makes a session of a model that is any callable, with members and captures:
/// `make_session<traced>(model, seed)`, or with a device or `server.tasks()` before the seed.
template <class Mode, class Model, class... Options>
    requires std::is_same_v<Mode, traced>
auto make_session(const Model& model, Options&&... options) {
    return session<Model, traced>(model, std::forward<Options>(options)...);
}

/// The same in graph mode: `session<model>`.
template <class Mode, class Model, class... Options>
    requires std::is_same_v<Mode, graph>
auto make_session(const Model&, Options&&... options) { return session<Model>(std::forward<Options>(options)...); }

} // namespace tapegraph
