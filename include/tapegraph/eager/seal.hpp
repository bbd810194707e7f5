#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/checkpointed_run.hpp>
#include <tapegraph/eager/generator.hpp>
#include <tapegraph/eager/operation_record.hpp>
#include <tapegraph/eager/replay.hpp>
#include <tapegraph/ops/kernels.hpp>
#include <tapegraph/runtime/perform.hpp>

#include <tuple>

/// Eager mode: sealing, invoking and reducing compute tensors immediately.

namespace tapegraph {

namespace detail {

template <class Op, class First = void, class...>
struct result_element {
    using type = typename First::element_type;
};
template <class Op, class First, class... Rest>
    requires requires { typename Op::result_element; }
struct result_element<Op, First, Rest...> {
    using type = typename Op::result_element;
};

template <class Op>
constexpr runtime::call_label label_of(const std::source_location& where) {
    return {Op::name, ir::detail::flops_of_call<Op>(), ir::detail::bytes_of_call<Op>(), where,
            ir::detail::method_of_call<Op>()};
}

} // namespace detail

/// Eager mode: every operation runs at once, and operations that depend on a watched tensor are
/// recorded.
struct eager {
    template <class T>
    using tensor = tapegraph::tensor<T>;

    /// The values of a formula, computed now.
    template <tensor_like E>
    static auto seal(const E& e, std::source_location where) {
        if constexpr (handle<E>) {
            return e;
        } else {
            detail::formula_values values;
            values.collect(e);
            const detail::formula_view& f = detail::formula_of<E>;
            any_tensor result = detail::run_formula(f, values, where);
            if (detail::any_tracked(values)) {
                const tapegraph::shape domain = result.shape();
                detail::record_formula(f, values, domain, nullptr, result);
            }
            return tapegraph::tensor<element_t<detail::formula<E, void>::value.type>>(std::move(result));
        }
    }

    /// A reduction of a formula, which is computed tile by tile on the way.
    template <class Op, tensor_like E>
    static auto reduce(const typename Op::attributes& attributes, std::source_location where, const E& e) {
        detail::formula_values values;
        values.collect(e);
        const detail::formula_view& f = detail::formula_of<E, Op>;
        const auto words = attributes_to_words<Op>(attributes);
        any_tensor result = detail::run_reduction(f, values, words.value, where);
        if (detail::any_tracked(values))
            detail::record_formula(f, values, detail::broadcast_shape(*f.code, values), words.value, result);
        return tapegraph::tensor<element_t<detail::formula<E, Op>::value.type>>(std::move(result));
    }

    /// Runs an operation that is not elementwise; `target` is the shape of the result where the operation needs one.
    template <class Op, class... Args>
    static auto invoke(const typename Op::attributes& attributes, const tapegraph::shape* target,
                       std::source_location where, const Args&... args) {
        if constexpr (Op::kind == operation_kind::map) // broadcast_to: adds zero-stride axes by a map
            return spread<Op>(target, where, args...);
        else
            return run<Op>(attributes, target, where, seal(args, where)...);
    }

    /// The same for operands in an array, all of one type.
    template <class Op, class T>
    static tapegraph::tensor<T> invoke_list(const typename Op::attributes& attributes, std::source_location where,
                                            const tapegraph::tensor<T>* parts, int count) {
        list<operand_info> in(count);
        list<buffer_view> views(count + 1);
        bool tracked = false;
        for (int i = 0; i < count; ++i) {
            in[i] = {parts[i].type(), parts[i].shape()};
            views[i] = parts[i].view();
            tracked = tracked || detail::tape_storage::instance().tracks(parts[i]);
        }
        inference io{in.begin(), count, nullptr, dtype_of<T>, {}, nullptr};
        Op::infer(attributes, io);
        if (io.error != nullptr) throw_misfit(io);
        tapegraph::tensor<T> result(any_tensor(io.type, io.result));
        views[count] = result.view();
        const auto words = attributes_to_words<Op>(attributes);
        kernel_call call;
        call.in = views.begin();
        call.inputs = count;
        call.out = call.in + count;
        call.outputs = 1;
        call.attributes = words.value;
        execute<Op, T>(call, where);
        detail::check_finite(Op::name, result, where);
        if (tracked) {
            tape_index at;
            auto& r = detail::tape_storage::instance().template append<detail::list_record<Op, T>>(at);
            r.attributes = attributes;
            for (int i = 0; i < count; ++i) {
                r.inputs.push_back(parts[i].outline());
                r.shapes.push_back(parts[i].shape());
            }
            result.set_tape_index(at);
        }
        return result;
    }

    /// An extent as a number that formulas take.
    template <tensor_like E>
    static number extent_number(const E&, extent value) {
        return {static_cast<double>(value.value)};
    }

    /// The shape of a tensor.
    template <class T>
    static tapegraph::shape shape_of(const tapegraph::tensor<T>& t) {
        return t.shape();
    }
    static tapegraph::shape shape_of(const number&) { return {}; }
    template <class Op, class... Args>
    static tapegraph::shape shape_of(const expr<Op, Args...>& e) {
        return detail::info_of(e).dims;
    }

    /// Runs an operation without operands (random numbers): result of `target`'s shape.
    template <class Op>
    static tapegraph::tensor<typename Op::result_element>
    create(const typename Op::attributes& attributes, const tapegraph::shape& target, const random_state& random) {
        inference io{nullptr, 0, &target, dtype::f32, {}, nullptr};
        Op::infer(attributes, io);
        if (io.error != nullptr) throw argument_error(io.error);
        auto result = tapegraph::tensor<typename Op::result_element>::uninitialized(target);
        const buffer_view out = result.view();
        const auto words = attributes_to_words<Op>(attributes);
        kernel_call call;
        call.out = &out;
        call.outputs = 1;
        call.attributes = words.value;
        call.random = &random;
        constexpr runtime::kernel_pair kernel = runtime::kernel_for<Op, typename Op::result_element>();
        runtime::perform(kernel, call, detail::label_of<Op>({}));
        return result;
    }

    /// The next numbers of this thread's random stream.
    template <class Op, class T>
    static auto draw(typename Op::attributes attributes, const tapegraph::shape& dims, std::source_location,
                     const tapegraph::tensor<T>&) {
        detail::random_stream& stream = detail::random_generator::instance().stream();
        attributes.ordinal = detail::checkpointed_run::ordinal(stream);
        return create<Op>(attributes, dims, stream.state);
    }
    /// Random numbers by Op's law in the shape `dims`, of the element type and the device of `like`.
    template <template <class> class Op, class T>
    static tapegraph::tensor<T> draw_like(const typename Op<float>::attributes& attributes,
                                          const tapegraph::shape& dims, std::source_location where,
                                          const tapegraph::tensor<T>& like) {
        static_assert(std::is_floating_point_v<T>, "random: numbers are floating, like their example");
        return draw<Op<T>>(attributes, dims, where, like);
    }

    /// The value of f and its gradient at tensors; may itself be differentiated. In eager/gradient_tape.hpp.
    template <class F, class... Args>
    static auto value_and_gradient(const F& f, const Args&... args);

private:
    // Runs the operation's own region, which passes elements through, over the target's shape.
    template <class Op, class E>
    static auto spread(const tapegraph::shape* target, std::source_location where, const E& e) {
        const auto x = seal(e, where);
        const operand_info operand{x.type(), x.shape()};
        inference io{&operand, 1, target, x.type(), {}, nullptr};
        Op::infer({}, io);
        if (io.error != nullptr)
            throw shape_error(std::string(io.error) + ": " + to_string(x.shape()) + " to " + to_string(*target));
        using T = typename decltype(x)::element_type;
        detail::formula_values values;
        using formula_type = expr<Op, tapegraph::tensor<T>>;
        values.leaves[0] = &x;
        values.leaf_count = 1;
        const detail::formula_view& f = detail::formula_of<formula_type>;
        any_tensor result(x.type(), io.result);
        const buffer_view in = x.view(), out = result.view();
        kernel_call call;
        call.in = &in;
        call.inputs = 1;
        call.out = &out;
        call.outputs = 1;
        call.domain = out;
        detail::run_forward(f, call, where);
        if (detail::any_tracked(values)) detail::record_formula(f, values, io.result, nullptr, result);
        return tapegraph::tensor<T>(std::move(result));
    }

    template <class Op, class... T>
    static tapegraph::tensor<typename detail::result_element<Op, tapegraph::tensor<T>...>::type>
    run(const typename Op::attributes& attributes, const tapegraph::shape* target, std::source_location where,
        const tapegraph::tensor<T>&... args) {
        using element = typename detail::result_element<Op, tapegraph::tensor<T>...>::type;
        using result_type = tapegraph::tensor<element>;
        constexpr int count = sizeof...(T);
        const operand_info in[count]{operand_info{args.type(), args.shape()}...};
        inference io{in, count, target, in[0].type, {}, nullptr};
        Op::infer(attributes, io);
        if (io.error != nullptr) throw_misfit(io, whole_reduction<Op> ? Op::name : std::string_view());

        any_tensor result;
        if constexpr (Op::kind == operation_kind::view) {
            result = std::get<0>(std::tie(args...)).viewed(io.result);
        } else {
            result = any_tensor(io.type, io.result);
            const buffer_view views[count + 1]{args.view()..., result.view()};
            kernel_call call;
            call.in = views;
            call.inputs = count;
            call.out = views + count;
            call.outputs = 1;
            if constexpr (attribute_words < Op >> 0) {
                const auto words = attributes_to_words<Op>(attributes);
                call.attributes = words.value;
                execute<Op, T...>(call, where);
            } else {
                execute<Op, T...>(call, where);
            }
        }
        detail::check_finite(Op::name, result, where);
        result_type typed(std::move(result));
        const detail::tape_storage& tape = detail::tape_storage::instance();
        if ((tape.tracks(args) || ...)) {
            using record = detail::operation_record<Op, result_type, tapegraph::tensor<T>...>;
            tape_index at;
            record& r = detail::tape_storage::instance().template append<record>(at);
            r.attributes = attributes;
            r.inputs = [&]<std::size_t... I>(std::index_sequence<I...>) {
                return std::tuple(detail::outlined(args, (saved_for_vjp_of<Op> >> I & 1) != 0)...);
            }
            (std::index_sequence_for<T...>{});
            typed.set_tape_index(at);
            r.output = detail::outlined(typed, (saved_for_vjp_of<Op> & saved_value) != 0);
        }
        return typed;
    }

    template <class Op, class First, class... Rest>
    static void execute(kernel_call& call, const std::source_location& where) {
        constexpr runtime::kernel_pair kernel = runtime::kernel_for<Op, First>();
        runtime::perform(kernel, call, detail::label_of<Op>(where));
    }

    // Shape rules that several operations share leave it to `operation` to name the culprit.
    [[noreturn]] static void throw_misfit(const inference& io, std::string_view operation = {});
};

#if TG_DEFINES(eager)
TG_DEFINITION void eager::throw_misfit(const inference& io, std::string_view operation) {
    std::string text = io.error;
    if (!operation.empty()) text.append(": ").append(operation).append(" of ");
    for (int i = 0; i < io.count; ++i)
        text += std::string(i > 0               ? ", "
                            : operation.empty() ? ": "
                                                : "") +
                name_of(io.in[i].type) + to_string(io.in[i].dims);
    if (io.target != nullptr) text += " to " + to_string(*io.target);
    throw shape_error(text);
}
#endif

template <class T>
template <expression E>
tensor<T>::tensor(const E& e, std::source_location where) : tensor(any_tensor(eager::seal(e, where))) {}

} // namespace tapegraph
