#pragma once

#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/passes/effects.hpp>
#include <tapegraph/nn/outputs.hpp>
#include <tapegraph/nn/scope.hpp>
#include <tapegraph/nn/taped_program.hpp>
#include <tapegraph/nn/variables.hpp>

#include <initializer_list>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// Define-then-run: a model names placeholders and fetches; a session runs fetches by name, fed by name.

namespace tapegraph {

/// A named result of a model.
template <tensor_like T>
struct fetch {
    std::string_view name;
    T value;

    constexpr fetch(std::string_view text, const T& result) : name(text), value(result) {}
};

/// What a session's model returns: `return fetches{fetch("y", y), fetch("loss", loss)};`
template <class... T>
struct fetches {
    std::tuple<fetch<T>...> items;

    constexpr fetches(const fetch<T>&... fetch_each) : items(fetch_each...) {}
};

/// A value for a placeholder.
struct feed {
    std::string_view name;
    any_tensor value;

    template <class T>
    feed(std::string_view placeholder, const tensor<T>& t) : name(placeholder), value(t) {}
    template <arithmetic T>
    feed(std::string_view placeholder, T number) : name(placeholder), value(tensor<T>(number)) {}
};

/// A fetched tensor; one element converts to a number: `float y = session.run<"y">(...)`.
template <class T>
class fetched : public tensor<T> {
public:
    explicit fetched(tensor<T> value) : tensor<T>(std::move(value)) {}
    // NOLINTNEXTLINE: implicit on purpose
    operator T() const { return this->item(); }
};

namespace detail {

/// Traces a session's model for one fetch; the passes then drop what the fetch does not need.
template <class Model, fixed_string Name>
struct fetch_trace {
    static constexpr void build(ir::trace& t) {
        t.training = false;
        const auto result = Model{}(graph_scope(&t, 0));
        std::apply([&](const auto&... item) { (keep(t, item), ...); }, result.items);
        if (t.outputs.size() == 0) t.fail("session: the model has no fetch of this name");
        t.assignments.clear();
        ir::drop_unneeded_effects(t);
    }

private:
    template <class T>
    static constexpr void keep(ir::trace& t, const fetch<T>& item) {
        if (item.name == Name.view()) t.outputs.push_back(ir::output_entry{item.name, eval(item.value).id()});
    }
};

} // namespace detail

/// Runs parts of a define-then-run model. Only what a fetch needs is compiled.
template <class Model>
class session {
    static_assert(std::is_empty_v<Model>, "a session's model is an empty type: its parameters are constants");

public:
    /// On the device this thread computes on (device_scope), or on another.
    explicit session(std::uint64_t seed = 0) : seed_(seed), device_(runtime::current_runtime()) {}
    explicit session(device where, std::uint64_t seed = 0)
        : seed_(seed), device_(runtime::runtime_for(where)) {}

    /// The value of one fetch. Throws argument_error for a name that is no placeholder and for a placeholder the fetch
    /// needs and `feeds` lacks.
    template <fixed_string Name>
    auto run(std::initializer_list<feed> feeds = {}) {
        using builder = detail::fetch_trace<Model, Name>;
        constexpr const ir::program_view& view = ir::compile_program<builder>();
        const device_scope on(device_);
        static thread_local std::vector<std::unique_ptr<ir::program>> programs; // one per device
        ir::program* found = nullptr;
        for (const auto& p : programs)
            if (p->device() == device_) found = p.get();
        if (found == nullptr) found = programs.emplace_back(std::make_unique<ir::program>(view, device_)).get();
        ir::program& program = *found;
        connect(program);
        for (const feed& f : feeds) {
            int index = -1;
            for (int i = 0; i < view.inputs.size(); ++i)
                if (view.inputs[i].name == f.name) index = i;
            if (index < 0) throw argument_error("session: no placeholder '" + std::string(f.name) + "'");
            program.set_input(index, f.value.view());
        }
        program.run({seed_, step_++});
        program.forget_inputs();
        constexpr dtype type = view.nodes[view.outputs[0].node].type;
        fetched<element_t<type>> result(detail::output_tensor<element_t<type>>(program, 0));
        if (is_floating(type) && detail::tape_storage::instance().recording()) {
            std::vector<const any_tensor*> fed;
            for (const feed& f : feeds) fed.push_back(&f.value);
            detail::refuse_derivative(result, fed,
                                      "gradient_tape: a session's runs have no gradient on the tape; use "
                                      "tg::function, or take it inside the model");
        }
        return result;
    }

    variable_list& variables() { return variables_; }

private:
    void connect(ir::program& program) {
        const ir::program_view& view = program.view();
        for (int i = 0; i < view.variables.size(); ++i) {
            const ir::variable_entry& v = view.variables[i];
            std::string path = detail::path_of(view.scopes, v.scope);
            if (!path.empty()) path += '/';
            path += v.name;
            variable* found = variables_.find(path);
            if (found == nullptr) {
                const buffer_view like = program.variable(i);
                any_tensor data(like.type, shape(like.rank, like.extents));
                const initializer how{static_cast<initializer_kind>(v.initializer), v.a, v.b};
                if (like.type == dtype::f64)
                    detail::initialize(static_cast<double*>(data.write()), data.shape(), how, seed_, path);
                else
                    detail::initialize(static_cast<float*>(data.write()), data.shape(), how, seed_, path);
                found = &variables_.add(path, std::move(data), v.trainable, false);
            }
            program.set_variable(i, found->data().view_on(program.device()).data); // read alone
        }
    }

    variable_list variables_;
    std::uint64_t seed_ = 0, step_ = 0;
    runtime::device_runtime* device_;
};

} // namespace tapegraph
