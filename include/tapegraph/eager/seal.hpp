#pragma once

#include <tapegraph/eager/checkpointed_run.hpp>
#include <tapegraph/eager/generator.hpp>
#include <tapegraph/eager/operation_tangent.hpp>
#include <tapegraph/eager/records.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/runtime/kernels.hpp>

#include <tuple>

/// Eager mode: what sealing, invoking and reducing do to tensors that exist.

namespace tapegraph {

namespace detail {

/// Rebuilds the trace of a formula from its code, over tensors with shapes.
inline int rebuild(node_interpreter& run, const formula_code& code, const int* leaf_nodes, const double* numbers) {
    const int* const words = code.kernel_words + code.forward;
    int registers[160];
    for (int s = 0; s < words[0]; ++s) {
        const int source = code.forward_sources[s];
        registers[s] = source < first_number
                           ? leaf_nodes[source]
                           : run.t.constant(numbers[source - first_number], slot_type(code, code.forward, s));
    }
    const int first = run.t.nodes.size();
    const int* instruction = words + 3 + words[0];
    for (int i = 0; i < words[1]; ++i, instruction += ir::words_per_instruction) {
        const ir::operation& op = *code.ops[instruction[0]];
        int args[4]{};
        int count = 0;
        for (; count < 4 && instruction[2 + count] >= 0; ++count) args[count] = registers[instruction[2 + count]];
        registers[words[0] + i] = run.t.map(op, args, count);
    }
    const int group = run.t.groups++;
    for (int i = first; i < run.t.nodes.size(); ++i) run.t.nodes[i].group = group;
    return registers[instruction[0]];
}

/// A formula's record as the trace of an interpreter.
struct replayed_formula {
    node_interpreter run;
    int nodes[most_leaves]{};
    const any_tensor* leaves[most_leaves]{};
    int output, last;

    explicit replayed_formula(const formula_record& r) {
        for (int i = 0; i < r.leaf_count; ++i) {
            nodes[i] = run.input(r.leaves[i]);
            leaves[i] = &r.leaves[i];
        }
        output = run.input(r.output);
        last = rebuild(run, *r.formula->code, nodes, r.numbers);
        if (r.formula->reduction == nullptr) return;
        const int group = run.t.nodes[last].op->kind == operation_kind::leaf ? run.t.groups++ : run.t.nodes[last].group;
        last = run.t.invoke(*r.formula->reduction, r.attributes, nullptr, &last, 1);
        run.t.nodes[last].group = group;
    }
};

inline void formula_record::replay(sweep& walk, const any_tensor& adjoint) {
    replayed_formula f(*this);
    const int above = f.run.input(adjoint);
    interpret_adjoints(f.run, f.last, f.output, above, f.leaves, f.nodes, leaf_count, walk);
}

inline bool formula_record::replay_forward(const forward_sweep& walk, any_tensor& tangent) {
    replayed_formula f(*this);
    return interpret_tangent(f.run, f.last, f.output, f.leaves, f.nodes, leaf_count, walk, tangent);
}

template <class Tensor>
Tensor add_adjoints(const Tensor& a, const Tensor& b) {
    const auto sum = [&]<class T>(T) -> Tensor {
        const tensor<T> x(a), y(b);
        return tensor<T>(x + y);
    };
    if (is_storage_type(a.type())) return interpreted_sum(a, b);
    return a.type() == dtype::f64 ? sum(0.0) : sum(0.0f);
}

template <class Tensor>
Tensor ones_like(const Tensor& like) {
    Tensor result(like.type(), like.shape());
    if (is_storage_type(like.type()))
        std::fill_n(static_cast<std::uint16_t*>(result.raw()), result.size(),
                    like.type() == dtype::bf16 ? bfloat16(1).bits : half(1).bits);
    else if (like.type() == dtype::f64)
        std::fill_n(static_cast<double*>(result.raw()), result.size(), 1.0);
    else
        std::fill_n(static_cast<float*>(result.raw()), result.size(), 1.0f);
    return result;
}

// Whether a derivative looks at the value is something an operation says; of users' operations it is taken for granted.
template <class Op>
inline constexpr bool needs_output = [] {
    if constexpr (requires { Op::needs_output; })
        return Op::needs_output;
    else
        return Op::kind == operation_kind::custom;
}();
// Moving elements needs the operand's shape to go back, not its values.
template <class Op>
inline constexpr bool needs_inputs =
    !(Op::kind == operation_kind::view || Op::kind == operation_kind::layout || Op::kind == operation_kind::scan) ||
    requires { requires Op::needs_inputs; }; // a running product does

/// An operation that is not elementwise, on the tape.
template <class Op, class Result, class... Args>
struct operation_record : tape_record {
    typename Op::attributes attributes;
    std::tuple<Args...> inputs;
    Result output;

    static void destroy(tape_record& base) { static_cast<operation_record&>(base).~operation_record(); }
    static void backward(tape_record& base, sweep& walk, const any_tensor& adjoint) {
        auto& self = static_cast<operation_record&>(base);
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            (self.template flow<I>(walk, Result(adjoint)), ...);
        }(std::index_sequence_for<Args...>{});
    }

    static bool forward(tape_record& base, const forward_sweep& walk, any_tensor& tangent) {
        return operation_tangent<Op>(static_cast<const operation_record&>(base), walk, tangent);
    }

private:
    template <std::size_t I>
    void flow(sweep& walk, const Result& adjoint) {
        const auto& input = std::get<I>(inputs);
        if (!walk.wants(input)) return;
        // Integers and bool have no derivative: their vjps need not even compile.
        using element = typename std::remove_cvref_t<decltype(input)>::element_type;
        if constexpr (ir::detail::is_floating(dtype_of<element>)) {
            if constexpr (has_indexed_vjp<Op, int(I), typename Op::attributes, Result, Args..., Result>)
                walk.add(input, eval(std::apply(
                                    [&](const auto&... in) {
                                        return Op::template vjp<int(I)>(attributes, adjoint, in..., output);
                                    },
                                    inputs)));
        }
    }
};

/// An operation of any number of operands on the tape: it needs their shapes, not their values.
template <class Op, class T>
struct list_record : tape_record {
    typename Op::attributes attributes;
    std::vector<any_tensor> inputs;
    list<shape> shapes;

    static void destroy(tape_record& base) { static_cast<list_record&>(base).~list_record(); }
    static void backward(tape_record& base, sweep& walk, const any_tensor& adjoint) {
        auto& self = static_cast<list_record&>(base);
        for (int k = 0; k < self.shapes.size(); ++k) {
            const any_tensor& input = self.inputs[static_cast<std::size_t>(k)];
            if (walk.wants(input))
                walk.add(input,
                         Op::vjp(self.attributes, tensor<T>(adjoint), self.shapes.begin(), self.shapes.size(), k));
        }
    }
    // Such operations put elements side by side, so the tangent is the operation on tangents.
    static bool forward(tape_record& base, const forward_sweep& walk, any_tensor& tangent) {
        auto& self = static_cast<list_record&>(base);
        if constexpr (!ir::detail::is_floating(dtype_of<T>)) return false;
        std::vector<tensor<T>> parts;
        bool any = false;
        for (int k = 0; k < self.shapes.size(); ++k) {
            const any_tensor* const found = walk.find(self.inputs[static_cast<std::size_t>(k)]);
            any = any || found != nullptr;
            parts.push_back(found != nullptr ? tensor<T>(*found) : zeros<T>(self.shapes[k]));
        }
        if (any)
            tangent = tapegraph::invoke_list<Op>(self.attributes, std::source_location{}, parts.data(),
                                                 static_cast<int>(parts.size()));
        return any;
    }
};

template <class T>
tensor<T> outlined(const tensor<T>& t, bool whole) {
    return whole ? t : tensor<T>(t.outline());
}

template <class Op, class First = void, class...>
struct result_element {
    using type = typename First::element_type;
};
template <class Op, class First, class... Rest>
    requires requires { typename Op::result_element; }
struct result_element<Op, First, Rest...> {
    using type = typename Op::result_element;
};

} // namespace detail

/// Eager mode: everything happens at once, and what depends on a watched tensor is recorded.
struct eager {
    template <class T>
    using tensor = tapegraph::tensor<T>;

    template <tensor_like E>
    static auto seal(const E& e, std::source_location) {
        if constexpr (handle<E>) {
            return e;
        } else {
            detail::formula_values values;
            values.collect(e);
            const detail::formula_view& f = detail::formula_of<E>;
            any_tensor result = detail::run_formula(f, values);
            if (detail::any_tracked(values)) {
                const tapegraph::shape domain = result.shape();
                detail::record_formula(f, values, domain, nullptr, result);
            }
            return tapegraph::tensor<element_t<detail::formula<E, void>::value.type>>(std::move(result));
        }
    }

    template <class Op, tensor_like E>
    static auto reduce(const typename Op::attributes& attributes, std::source_location, const E& e) {
        detail::formula_values values;
        values.collect(e);
        const detail::formula_view& f = detail::formula_of<E, Op>;
        const auto words = attributes_to_words<Op>(attributes);
        any_tensor result = detail::run_reduction(f, values, words.value);
        if (detail::any_tracked(values))
            detail::record_formula(f, values, detail::broadcast_shape(values.leaves, values.leaf_count), words.value,
                                   result);
        return tapegraph::tensor<element_t<detail::formula<E, Op>::value.type>>(std::move(result));
    }

    template <class Op, class... Args>
    static auto invoke(const typename Op::attributes& attributes, const tapegraph::shape* target,
                       std::source_location where, const Args&... args) {
        if constexpr (Op::kind == operation_kind::map) // broadcast_to: adds zero-stride axes through a map
            return spread<Op>(target, where, args...);
        else
            return run<Op>(attributes, target, seal(args, where)...);
    }

    template <class Op, class T>
    static tapegraph::tensor<T> invoke_list(const typename Op::attributes& attributes, std::source_location,
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
        execute<Op, T>(call);
        detail::check_finite(Op::name, result);
        if (tracked) {
            tape_place place;
            auto& r = detail::tape_storage::instance().template append<detail::list_record<Op, T>>(place);
            r.attributes = attributes;
            for (int i = 0; i < count; ++i) {
                r.inputs.push_back(parts[i].outline());
                r.shapes.push_back(parts[i].shape());
            }
            result.set_place(place);
        }
        return result;
    }

    template <tensor_like E>
    static number extent_number(const E&, extent value) {
        return {static_cast<double>(value.value)};
    }

    template <class T>
    static tapegraph::shape shape_of(const tapegraph::tensor<T>& t) {
        return t.shape();
    }
    template <class Op, class... Args>
    static tapegraph::shape shape_of(const expr<Op, Args...>& e) {
        detail::formula_values values;
        values.collect(e);
        return detail::broadcast_shape(values.leaves, values.leaf_count);
    }

    /// Runs an operation without operands (random numbers): result of `target`'s shape.
    template <class Op>
    static tapegraph::tensor<typename Op::result_element> create(const typename Op::attributes& attributes,
                                                                 const tapegraph::shape& target,
                                                                 const random_state& random) {
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
        runtime::kernel<Op, typename Op::result_element>::run(call);
        return result;
    }

    /// The next numbers of this thread's stream.
    template <class Op, class T>
    static auto draw(typename Op::attributes attributes, const tapegraph::shape& dims, std::source_location,
                     const tapegraph::tensor<T>&) {
        detail::random_stream& stream = detail::random_generator::instance().stream();
        attributes.ordinal = detail::checkpointed_run::ordinal(stream);
        return create<Op>(attributes, dims, stream.state);
    }
    template <template <class> class Op, class T>
    static tapegraph::tensor<T> draw_like(const typename Op<float>::attributes& attributes, const tapegraph::shape& dims,
                                          std::source_location where, const tapegraph::tensor<T>& like) {
        static_assert(std::is_floating_point_v<T>, "random: numbers are float or double, like their example");
        return draw<Op<T>>(attributes, dims, where, like);
    }

    /// The value of f and its gradient at tensors; may itself be differentiated. In eager/gradient_tape.hpp.
    template <class F, class... Args>
    static auto value_and_gradient(const F& f, const Args&... args);

private:
    // The operation's own region, which hands elements through, run over the target's shape.
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
        cpu::run_map(f.forward, call);
        if (detail::any_tracked(values)) detail::record_formula(f, values, io.result, nullptr, result);
        return tapegraph::tensor<T>(std::move(result));
    }

    template <class Op, class... T>
    static auto run(const typename Op::attributes& attributes, const tapegraph::shape* target,
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
            if constexpr (attribute_words<Op> > 0) {
                const auto words = attributes_to_words<Op>(attributes);
                call.attributes = words.value;
                execute<Op, T...>(call);
            } else {
                execute<Op, T...>(call);
            }
        }
        detail::check_finite(Op::name, result);
        result_type typed(std::move(result));
        const detail::tape_storage& tape = detail::tape_storage::instance();
        if ((tape.tracks(args) || ...)) {
            using record = detail::operation_record<Op, result_type, tapegraph::tensor<T>...>;
            tape_place place;
            record& r = detail::tape_storage::instance().template append<record>(place);
            r.attributes = attributes;
            r.inputs = std::tuple(detail::outlined(args, detail::needs_inputs<Op>)...);
            typed.set_place(place);
            r.output = detail::outlined(typed, detail::needs_output<Op>);
        }
        return typed;
    }

    template <class Op, class First, class... Rest>
    static void execute(kernel_call& call) {
        constexpr runtime::kernel_pair kernel = runtime::kernel_for<Op, First>();
        call.workspace = detail::scratch(kernel.workspace(call));
        kernel.run(call);
    }

    // Rules that several operations share leave it to `operation` to say which it was.
    [[noreturn]] static void throw_misfit(const inference& io, std::string_view operation = {}) {
        std::string text = io.error;
        if (!operation.empty()) text.append(": ").append(operation).append(" of ");
        for (int i = 0; i < io.count; ++i)
            text += std::string(i > 0 ? ", " : operation.empty() ? ": " : "") + name_of(io.in[i].type) + to_string(io.in[i].dims);
        if (io.target != nullptr) text += " to " + to_string(*io.target);
        throw shape_error(text);
    }
};

template <class T>
template <expression E>
tensor<T>::tensor(const E& e, std::source_location where) : tensor(any_tensor(eager::seal(e, where))) {}

} // namespace tapegraph
