#pragma once

#include <tapegraph/eager/derivatives.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/derivatives.hpp>
#include <tapegraph/nn/outputs.hpp>
#include <tapegraph/nn/spec.hpp>

#include <memory>
#include <tuple>

/// tg::function: one C++ function as a compiled graph or as an eager callable.

namespace tapegraph {

namespace detail {

/// What a traced function may return: a tensor, a tuple of returnables, or what value_and_gradient, jvp and the like return.
template <class R>
struct returned;

template <tensor_like R>
struct returned<R> {
    static constexpr int count = 1;
    static constexpr void record(ir::trace& t, const R& value) { t.outputs.push_back({"", eval(value).id()}); }
    template <class Stage, int First>
    static auto rebuild(const ir::program& p) {
        constexpr dtype type = Stage::value.nodes[Stage::value.outputs[First].node].type;
        return output_tensor<element_t<type>>(p, First);
    }
};

template <class... R>
struct returned<std::tuple<R...>> {
    static constexpr int count = (0 + ... + returned<R>::count);
    static constexpr void record(ir::trace& t, const std::tuple<R...>& values) {
        std::apply([&](const auto&... value) { (returned<std::remove_cvref_t<decltype(value)>>::record(t, value), ...); },
                   values);
    }
    template <class Stage, int First>
    static auto rebuild(const ir::program& p) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return std::tuple{returned<R>::template rebuild<Stage, First + before(I)>(p)...};
        }(std::index_sequence_for<R...>{});
    }

private:
    static constexpr int before(std::size_t index) {
        const int counts[]{returned<R>::count...};
        int sum = 0;
        for (std::size_t i = 0; i < index; ++i) sum += counts[i];
        return sum;
    }
};

template <template <class...> class R, class... P>
    requires result_record<R<P...>>
struct returned<R<P...>> {
    using parts = returned<std::tuple<P...>>;
    static constexpr int count = parts::count;
    static constexpr void record(ir::trace& t, const R<P...>& r) { parts::record(t, r.parts()); }
    template <class Stage, int First>
    static auto rebuild(const ir::program& p) {
        return std::apply([](auto&&... part) { return R<std::remove_cvref_t<decltype(part)>...>{std::move(part)...}; },
                          parts::template rebuild<Stage, First>(p));
    }
};

template <class F, class... Specs>
struct function_trace {
    template <class Spec>
    static constexpr graph_node input(ir::trace& t) {
        return {&t, t.input("argument", dtype_of<typename Spec::element_type>, Spec::dims(t.extents))};
    }
    static constexpr auto call(ir::trace& t) {
        const std::tuple arguments{input<Specs>(t)...}; // braces: inputs in order
        return std::apply([](const auto&... x) { return F{}(x...); }, arguments);
    }
    using result = decltype(call(std::declval<ir::trace&>()));
    static constexpr void build(ir::trace& t) { returned<result>::record(t, call(t)); }
};

} // namespace detail

/// A function compiled into a static graph for arguments of given types and shapes; shapes are checked by the compiler.
template <class F, class... Specs>
class graph_function {
    using trace = detail::function_trace<F, Specs...>;
    using first_stage = ir::compile_stage<ir::detail::traced<trace>>;

public:
    graph_function() : program_(std::make_unique<ir::program>(ir::compile_program<trace>())) {}

    /// Runs the graph. Results are tensors, in the structure in which the function returns nodes.
    auto operator()(const tensor<typename Specs::element_type>&... arguments) {
        const device_scope on(program_->device());
        int index = 0;
        (program_->set_input(index++, arguments.view()), ...);
        program_->run(random_.next());
        return detail::returned<typename trace::result>::template rebuild<first_stage, 0>(*program_);
    }

    /// Calls draw from this seed, counted from here, instead of the thread's (random::set_seed).
    void set_seed(std::uint64_t seed) { random_.set_seed(seed); }

    const ir::program_view& view() const { return program_->view(); }
    ir::program& program() { return *program_; }

private:
    std::unique_ptr<ir::program> program_;
    detail::call_counter random_;
};

/// The same function run eagerly on the same arguments.
template <class F, class... Specs>
class eager_function {
public:
    auto operator()(const tensor<typename Specs::element_type>&... arguments) {
        detail::random_stream stream{random_.next(), 0};
        const detail::random_scope draws(stream);
        return detail::map_results([](const auto& each) { return eval(each); }, F{}(arguments...));
    }
    /// Does what graph_function::set_seed does; equal seeds give equal numbers in both modes.
    void set_seed(std::uint64_t seed) { random_.set_seed(seed); }

private:
    detail::call_counter random_;
};

/// `function<graph>(f, spec<float, dyn, 784>{}, ...)`. f is a captureless lambda or an empty function object.
template <class Mode, class F, class... Specs>
auto function(const F&, Specs...) {
    static_assert(std::is_empty_v<F>, "a compiled function cannot capture: pass what it needs as an argument");
    if constexpr (std::is_same_v<Mode, graph>)
        return graph_function<F, Specs...>();
    else
        return eager_function<F, Specs...>();
}

} // namespace tapegraph
