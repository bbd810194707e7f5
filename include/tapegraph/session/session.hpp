#pragma once

#include <tapegraph/compile/verdict.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/model/outputs.hpp>
#include <tapegraph/model/taped_program.hpp>
#include <tapegraph/session/files.hpp>
#include <tapegraph/session/trace.hpp>

#include <array>
#include <initializer_list>
#include <tuple>
#include <utility>
#include <vector>

/// Define-then-run: a model names placeholders and fetches; a session runs fetches by name and is
/// fed by name.

namespace tapegraph {

/// Runs parts of a define-then-run model. Each set of fetches compiles to a program of only what
/// they need. A session owns its variables and its programs; a run sees what the previous one
/// changed. Use a session from one thread at a time.
template <class Model, class Mode = graph> // the default stands here, since nvcc repeats that of a declaration
class session : public detail::session_files<session<Model, Mode>> {
    static_assert(std::is_same_v<Mode, graph>,
                  "a session's mode is tg::graph, or tg::traced: tg::make_session<tg::traced>(model)");
    static_assert(std::is_empty_v<Model>,
                  "a session's model is an empty type, whose parameters are constants; others are for "
                  "tg::make_session<tg::traced>(model)");
    using base = detail::session_files<session>;
    friend base;
    using fetches = detail::fetches_of<Model>; // evaluated here, where the compiler's path into the model is shortest

    template <class Fetches, class Given>
    using trace = detail::session_trace<Model, Fetches, Given>;
    using model_alone = detail::fetch_trace<Model, detail::name_list<>, detail::name_list<>, true>;

    /// The mistake in a run; `valid` if there is none.
    template <fixed_string... Names>
    struct mistake {
        template <fixed_string... Given>
        using with = typename decltype(detail::run_verdict<
                                       trace<detail::name_list<Names...>, detail::name_list<Given...>>>())::type;
    };

public:
    /// Computes on the device of this thread (device_scope), or on another.
    explicit session(std::uint64_t seed = 0) : base(seed, runtime::current_runtime(), &first_state) {}
    explicit session(device where, std::uint64_t seed = 0) : base(seed, runtime::runtime_for(where), &first_state) {}
    /// One of several tasks of a cluster, `server.tasks()`. Each task makes the session and runs
    /// the same fetches with the same feeds. A task computes what scope.with_device gives it by
    /// name and holds the variables of that part; all tasks get the results.
    explicit session(task_group& tasks, std::uint64_t seed = 0)
        : base(seed, runtime::current_runtime(), &first_state, &tasks) {}

    /// Runs the fetches once. Returns their values in a tuple, the value itself if only one of them
    /// has one, nothing if all are operations. Operations change variables after everything else.
    /// Throws argument_error for a name that is no placeholder, for one fed twice, and for a
    /// placeholder that the fetches need and that is not fed.
    template <fixed_string... Names, fixed_string... Given, class Mistake = mistake<Names...>::template with<Given...>>
        requires std::is_same_v<Mistake, detail::valid>
    auto run(std::initializer_list<feed> feeds, const given<Given>&... values) {
        std::vector<const feed*> pointers;
        for (const feed& f : feeds) pointers.push_back(&f);
        (pointers.push_back(&values), ...);
        return run_with<detail::name_list<Names...>, detail::name_list<Given...>>(pointers);
    }
    template <fixed_string... Names, fixed_string... Given, class Mistake = mistake<Names...>::template with<Given...>>
        requires std::is_same_v<Mistake, detail::valid>
    auto run(const given<Given>&... values) {
        return run_with<detail::name_list<Names...>, detail::name_list<Given...>>({&values...});
    }
    // Chosen if something is wrong, which the compiler then shows as `Mistake`.
    template <fixed_string... Names, fixed_string... Given, class Mistake = mistake<Names...>::template with<Given...>>
        requires(!std::is_same_v<Mistake, detail::valid>)
    void run(std::initializer_list<feed> feeds, const given<Given>&... values) = delete;
    template <fixed_string... Names, fixed_string... Given, class Mistake = mistake<Names...>::template with<Given...>>
        requires(!std::is_same_v<Mistake, detail::valid>)
    void run(const given<Given>&... values) = delete;

    /// The optimizer of a fetch of minimize; its numbers may change between runs. `Which`: its
    /// index in a group.
    template <fixed_string Name, int Which = 0>
    auto& optimizer() {
        return std::get<optimizer_at<Name, Which>()>(optimizers_);
    }
    /// The number of steps that it has taken.
    template <fixed_string Name, int Which = 0>
    std::int64_t iterations() {
        constexpr int training = detail::session_optimizers<Model>.trainings[optimizer_at<Name, Which>()];
        return static_cast<std::int64_t>(*static_cast<const double*>(this->iterations_of(training).data().read()));
    }

    /// The compiled program of a set of fetches, for tg::explain and tg::to_dot.
    template <fixed_string... Names>
    static constexpr const ir::program_view& view() {
        return ir::compile_program<trace<detail::name_list<Names...>, detail::name_list<>>>();
    }

private:
    const ir::model_view& variables_made_by_model() {
        static constexpr ir::model_view view = ir::stage_view<ir::traced_stage<model_alone>>();
        return view;
    }

    void make_everything() {
        this->variables();
        if constexpr (detail::has_optimizers<Model>) {
            using whole = detail::session_update_trace<Model, detail::all_operations, detail::name_list<>>;
            static constexpr ir::model_view view = ir::stage_view<ir::traced_stage<whole>>();
            this->make_variables(view);
            for (const int training : detail::session_optimizers<Model>.trainings) this->iterations_of(training);
        }
    }

    template <fixed_string Name, int Which>
    static constexpr std::size_t optimizer_at() {
        constexpr const auto& table = detail::session_optimizers<Model>;
        constexpr std::size_t found = [] {
            int left = Which;
            for (std::size_t i = 0; i < table.count; ++i)
                if (table.names[i] == Name.view() && left-- == 0) return table.first_of(i);
            return table.count;
        }();
        static_assert(found < table.count, "session: the fetch has no such optimizer");
        return found;
    }

    template <class Fetches, class Given>
    auto run_with(const std::vector<const feed*>& feeds) {
        using parts = detail::parts_of<trace<Fetches, Given>>;
        constexpr const auto& whole = ir::traced_stage<trace<Fetches, Given>>::value;
        constexpr bool trains = detail::wanted_trainings<Model, Fetches>() != 0;
        detail::session_program& p = this->program_of(parts::all.data(), static_cast<int>(parts::all.size()));
        if constexpr (detail::wants_first_values<Model, Fetches>()) this->initialize_all();
        if constexpr (trains)
            train<Fetches>(p, feeds);
        else
            this->execute(p, feeds, nullptr, 0);
        if constexpr (whole.used.outputs == 0) {
            this->finish(p, trains);
        } else {
            auto values = [&]<std::size_t... I>(std::index_sequence<I...>) {
                if constexpr (sizeof...(I) == 1)
                    return result<whole.nodes[whole.outputs[0].node].type>(p, 0, feeds);
                else
                    return std::tuple{result<whole.nodes[whole.outputs[I].node].type>(p, I, feeds)...};
            }
            (std::make_index_sequence<static_cast<std::size_t>(whole.used.outputs)>{});
            this->finish(p, trains);
            return values;
        }
    }

    // Takes a training step, and counts it only if it succeeds.
    template <class Fetches>
    void train(detail::session_program& p, const std::vector<const feed*>& feeds) {
        constexpr const auto& table = detail::session_optimizers<Model>;
        std::vector<double> numbers;
        std::vector<double*> counts;
        [&]<std::size_t... I>(std::index_sequence<I...>) { (add_numbers<I, Fetches>(numbers, counts), ...); }
        (std::make_index_sequence<table.count>{});
        this->execute(p, feeds, numbers.data(), static_cast<int>(numbers.size()));
        for (double* const count : counts) *count += 1;
    }
    template <std::size_t I, class Fetches>
    void add_numbers(std::vector<double>& numbers, std::vector<double*>& counts) {
        constexpr const auto& table = detail::session_optimizers<Model>;
        if constexpr (table.first_of(I) == I &&
                      (detail::wanted_trainings<Model, Fetches>() >> table.trainings[I] & 1) != 0) {
            counts.push_back(static_cast<double*>(this->iterations_of(table.trainings[I]).own_data()));
            for (const double n : std::get<I>(optimizers_).numbers(static_cast<std::int64_t>(*counts.back()) + 1))
                numbers.push_back(n);
        }
    }

    template <dtype Type>
    fetched<element_t<Type>> result(detail::session_program& p, std::size_t index,
                                    const std::vector<const feed*>& feeds) {
        fetched<element_t<Type>> value(tensor<element_t<Type>>(detail::result_of_parts(p, index)));
        if (is_floating(Type) && detail::tape_storage::instance().recording()) {
            std::vector<const any_tensor*> fed;
            for (const feed* f : feeds) fed.push_back(&f->value);
            detail::refuse_derivative(value, fed, detail::no_gradient_of_runs);
        }
        return value;
    }

    static double first_state(const detail::session_base& self, int which, std::string_view name) {
        double value = 0;
        if constexpr (detail::has_optimizers<Model>) {
            constexpr const auto& table = detail::session_optimizers<Model>;
            const auto look = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
                const auto& optimizer = std::get<I>(static_cast<const session&>(self).optimizers_);
                if constexpr (requires { optimizer.first_value(name); })
                    if (table.first_of(I) == I && table.trainings[I] == which) value = optimizer.first_value(name);
            };
            [&]<std::size_t... I>(std::index_sequence<I...>) { (look(std::integral_constant<std::size_t, I>{}), ...); }
            (std::make_index_sequence<table.count>{});
        }
        return value;
    }

    static constexpr auto first_optimizers() {
        if constexpr (detail::has_optimizers<Model>)
            return detail::session_optimizers<Model>.optimizers;
        else
            return std::tuple<>{};
    }
    decltype(first_optimizers()) optimizers_ = first_optimizers();
};

} // namespace tapegraph
