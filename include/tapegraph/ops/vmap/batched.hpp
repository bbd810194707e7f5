#pragma once

#include <tapegraph/core/list.hpp>
#include <tapegraph/expr/differentiate.hpp>
#include <tapegraph/expr/indexable.hpp>
#include <tapegraph/expr/transforms.hpp>
#include <tapegraph/ops/movement/layout.hpp>

#include <array>

/// Batches that have the shape of one example, on which functions under vmap compute. Every
/// operation on them runs for the whole batch at once. This is a mode over another mode.

namespace tapegraph {

template <class Mode, class Tag>
struct batched_mode;

/// A value per example of a batch, one after another along axis 0 of `whole`. `Tag` distinguishes
/// vmaps.
template <class Handle, class Tag>
class batched : public indexable<batched<Handle, Tag>> {
public:
    constexpr batched() = default; ///< without a value until it is assigned
    constexpr explicit batched(const Handle& whole) : whole_(whole) {}
    /// Seals a formula.
    template <expression E>
    // NOLINTNEXTLINE: implicit, so that models can write h = relu(h)
    constexpr batched(const E& e, std::source_location where = std::source_location::current())
        : batched(eval(e, where)) {}

    /// The values of a formula, as the constructor gives.
    template <expression E>
    static constexpr batched sealed(const E& e) {
        return batched(e);
    }

    /// The value with its batch axis in front.
    constexpr const Handle& whole() const { return whole_; }
    /// The extent of the batch.
    constexpr extent count() const { return shape_of(whole_)[0]; }
    /// The shape of one element of the batch.
    constexpr tapegraph::shape shape() const {
        const tapegraph::shape s = shape_of(whole_);
        return {s.rank() - 1, s.data() + 1, s.table()};
    }
    /// The number of axes of one element of the batch.
    constexpr int rank() const { return shape_of(whole_).rank() - 1; }
    /// The type of the elements.
    constexpr dtype type() const { return whole_.type(); }

private:
    Handle whole_{};
};

template <class Handle, class Tag>
std::string to_string(const batched<Handle, Tag>& x) {
    return name_of(x.type()) + to_string(x.shape()) + " per example";
}
template <class Handle, class Tag>
inline constexpr bool has_text<batched<Handle, Tag>> = true;

template <class Handle, class Tag>
constexpr void refuse(const batched<Handle, Tag>& x, const char* what) {
    refuse(x.whole(), what);
}

template <class Handle, class Tag>
struct handle_traits<batched<Handle, Tag>> {
    using mode = batched_mode<typename handle_traits<Handle>::mode, Tag>;
};

/// The batching rule of an operation: `apply(context, attributes, operands...)`, at least one of
/// them batched, returns a handle with the batch in front. Custom operations get a specialisation.
template <class Op>
struct batching_rule {
    /// Runs the operation on operands some of which have a batch; this one says that there is no rule.
    template <class Context>
    static constexpr auto apply(const Context& c, const typename Op::attributes&, const auto& first, const auto&...) {
        static_assert(always_false<Op>,
                      "vmap: this operation has no batching rule; specialise tg::batching_rule for it");
        return c.whole(first);
    }
};

namespace detail {

template <class First, class Second>
inline constexpr bool encloses = false; // whether First is a mode over Second, or over one that encloses it
template <class Mode, class Tag, class Second>
inline constexpr bool encloses<batched_mode<Mode, Tag>, Second> =
    std::is_same_v<Mode, Second> || encloses<Mode, Second>;
template <class Mode>
inline constexpr bool is_batched_mode = false;
template <class Mode, class Tag>
inline constexpr bool is_batched_mode<batched_mode<Mode, Tag>> = true;

// Operands that a vmap does not map may be combined with mapped ones.
template <class First, class Second>
    requires encloses<First, Second>
struct one_mode<First, Second> {
    using type = First;
};
template <class First, class Second>
    requires encloses<Second, First>
struct one_mode<First, Second> {
    using type = Second;
};
template <class First, class Second>
    requires(is_batched_mode<First>&& is_batched_mode<Second> && !std::is_same_v<First, Second> &&
             !encloses<First, Second> && !encloses<Second, First>)
struct one_mode<First, Second> {
    static_assert(always_false<First>,
                  "values of two vmaps meet and neither runs inside the other's values: hand the outer "
                  "one's value to the inner vmap as an argument");
    using type = First;
};

template <class Tag, class T>
inline constexpr bool batched_by = false;
template <class Tag, class Handle>
inline constexpr bool batched_by<Tag, batched<Handle, Tag>> = true;

/// [count, extents of s...]
constexpr shape with_batch(extent count, const shape& s) {
    shape result;
    result.attach(count.table != nullptr ? count.table : s.table());
    result.push_back(count);
    for (int i = 0; i < s.rank(); ++i) result.push_back(s[i]);
    return result;
}

/// The batch with axes of extent 1 after axis 0, so that one example has `rank` axes and aligns
/// with other operands.
template <class Handle, class Tag>
constexpr auto lined_up(const batched<Handle, Tag>& x, int rank, std::source_location where) {
    const shape own = x.shape();
    if (own.rank() >= rank) return x.whole();
    shape target = with_batch(x.count(), {});
    for (int i = own.rank(); i < rank; ++i) target.push_back(1);
    for (int i = 0; i < own.rank(); ++i) target.push_back(own[i]);
    return eval(invoke<reshape_op>({}, &target, where, x.whole()));
}

/// Converts to a handle of `Mode`: one of a mode below is repeated over the batches of `like`.
template <class Mode, class Handle, class Like>
constexpr auto raised(const Handle& x, const Like& like, std::source_location where) {
    if constexpr (std::is_same_v<mode_of_t<Handle>, Mode>) {
        return x;
    } else {
        const auto inner = raised<typename Mode::below>(x, like.whole(), where);
        const shape target = with_batch(like.count(), shape_of(inner));
        const auto whole = invoke<broadcast_op>({}, &target, where, inner);
        return batched<std::remove_cvref_t<decltype(whole)>, typename Mode::tag>(whole);
    }
}

/// The first operand that is batched by Tag.
template <class Tag, class First, class... Rest>
constexpr const auto& first_batched(const First& first, const Rest&... rest) {
    if constexpr (batched_by<Tag, First>)
        return first;
    else
        return first_batched<Tag>(rest...);
}

/// Converts a formula over batches to one over the handles below; one example of it has `rank`
/// axes.
template <class Tag, class E>
constexpr auto lowered_formula(const E& e, int rank, std::source_location where) {
    if constexpr (batched_by<Tag, E>) {
        return lined_up(e, rank, where);
    } else if constexpr (expression<E>) {
        return [&]<class Op, class... Args, std::size_t... I>(const expr<Op, Args...>& f, std::index_sequence<I...>) {
            using result = expr<Op, decltype(lowered_formula<Tag>(f.template get<I>(), rank, where))...>;
            return result(lowered_formula<Tag>(f.template get<I>(), rank, where)...);
        }(e, std::make_index_sequence<static_cast<std::size_t>(E::arity)>{});
    } else {
        return e;
    }
}

/// The context that batching rules receive.
template <class Mode>
struct batch_context {
    using tag = typename Mode::tag;
    extent count;        ///< examples
    const shape* target; ///< the requested shape of one example; null when there is none
    std::source_location where;

    template <class T>
    static constexpr bool is_batched = batched_by<tag, T>;

    /// The batch; an operand without one is returned unchanged.
    template <class T>
    static constexpr const auto& whole(const T& x) {
        if constexpr (is_batched<T>)
            return x.whole();
        else
            return x;
    }
    /// The batch; an operand without one is repeated.
    template <class T>
    constexpr auto spread(const T& x, const auto& like) const {
        return raised<Mode>(x, like, where).whole();
    }
    constexpr shape with_batch(const shape& s) const { return detail::with_batch(count, s); }

    /// Runs the operation on handles of the mode below.
    template <class Op>
    constexpr auto run(const typename Op::attributes& attributes, const shape* result_shape, const auto&... x) const {
        return invoke<Op>(attributes, result_shape, where, x...);
    }
    constexpr auto reshape(const auto& x, const shape& to) const { return run<reshape_op>({}, &to, x); }
    /// Moves axis `from` to position `to`.
    constexpr auto move_axis(const auto& x, int from, int to) const {
        transpose_op::attributes a;
        const int rank = shape_of(x).rank();
        a.rank = rank;
        for (int i = 0, next = 0; i < rank; ++i) {
            if (next == from) ++next;
            a.permutation[i] = i == to ? from : next++;
        }
        return run<transpose_op>(a, nullptr, x);
    }
};

/// The type of results in modes that name one.
template <class Mode, class Tag>
struct batched_results {};
template <one_handle Mode, class Tag>
struct batched_results<Mode, Tag> {
    using node = batched<typename Mode::node, Tag>;
};

} // namespace detail

/// The mode of batches over handles of Mode.
template <class Mode, class Tag>
struct batched_mode : detail::batched_results<Mode, Tag> {
    using below = Mode;
    using tag = Tag;

    /// The values of a formula, with the batch.
    template <tensor_like E>
    static constexpr auto seal(const E& e, std::source_location where) {
        if constexpr (handle<E>)
            return e;
        else
            return wrapped(Mode::seal(detail::lowered_formula<Tag>(e, shape_of(e).rank(), where), where));
    }

    /// Runs an operation that is not elementwise by its batching rule.
    template <class Op, class... Args>
    static constexpr auto invoke(const typename Op::attributes& attributes, const shape* target,
                                 std::source_location where, const Args&... args) {
        return run<Op>(attributes, target, where, eval(args, where)...);
    }

    /// Operations of any number of operands have one axis as attribute.
    template <class Op, class Handle>
    static constexpr batched<Handle, Tag> invoke_list(const typename Op::attributes& attributes,
                                                      std::source_location where, const batched<Handle, Tag>* parts,
                                                      int count) {
        auto shifted = attributes;
        ++shifted.axis;
        list<Handle> wholes;
        for (int k = 0; k < count; ++k) wholes.push_back(parts[k].whole());
        return wrapped(Mode::template invoke_list<Op>(shifted, where, wholes.begin(), count));
    }

    /// Reduces axes of each element of the batch.
    template <class Op, tensor_like E>
    static constexpr auto reduce(const typename Op::attributes& attributes, std::source_location where, const E& e) {
        auto shifted = attributes;
        shifted.axes <<= 1; // axis 0 is the batch
        return wrapped(
            Mode::template reduce<Op>(shifted, where, detail::lowered_formula<Tag>(e, shape_of(e).rank(), where)));
    }

    /// An extent as a number that formulas take.
    template <class Handle>
    static constexpr auto extent_number(const batched<Handle, Tag>& like, extent value) {
        return Mode::extent_number(like.whole(), value);
    }

    /// The shape of one element of the batch.
    template <class Handle>
    static constexpr shape shape_of(const batched<Handle, Tag>& x) {
        return x.shape();
    }
    static constexpr shape shape_of(const number&) { return {}; }
    template <class T>
    static constexpr shape shape_of(const T& e) {
        if constexpr (handle<T>) {
            return tapegraph::shape_of(e);
        } else {
            return [&]<std::size_t... I>(std::index_sequence<I...>) {
                shape result = shape_of(e.template get<0>());
                bool ok = true;
                ((result = I == 0 ? result : broadcast(result, shape_of(e.template get<I>()), ok)), ...);
                return result;
            }
            (std::make_index_sequence<static_cast<std::size_t>(T::arity)>{});
        }
    }

    /// The value and the gradient of every example. Examples do not affect each other, so this is
    /// the gradient of their sum. Arguments that are not batched are repeated first.
    template <class F, tensor_like... Args>
    static constexpr auto value_and_gradient(const F& f, const Args&... args) {
        const auto where = std::source_location::current();
        return with_handles(
            [&](const auto& like, const auto&... x) {
                const auto of_wholes = [&](const auto&... h) {
                    return detail::raised<batched_mode>(eval(f(wrapped(h)...)), like, where).whole();
                };
                const auto r =
                    Mode::value_and_gradient(of_wholes, detail::raised<batched_mode>(x, like, where).whole()...);
                const auto gradient = each_wrapped(r.gradient);
                return value_with_gradient<decltype(wrapped(r.value)), std::remove_cvref_t<decltype(gradient)>>{
                    wrapped(r.value), gradient};
            },
            eval(args, where)...);
    }

    /// Converts to handles of this mode: those of modes below are repeated over the batch.
    template <class... Handles>
    static constexpr auto raised(std::source_location where, const Handles&... x) {
        const auto& like = detail::first_batched<Tag>(x...);
        return std::array{detail::raised<batched_mode>(x, like, where)...};
    }

    /// A value whose first axis is the batch.
    template <class Handle>
    static constexpr batched<Handle, Tag> wrapped(const Handle& whole) {
        return batched<Handle, Tag>(whole);
    }

private:
    static constexpr auto each_wrapped(const auto& whole) { return wrapped(whole); }
    template <class... T>
    static constexpr auto each_wrapped(const std::tuple<T...>& wholes) {
        return std::apply([](const auto&... whole) { return std::tuple{wrapped(whole)...}; }, wholes);
    }
    template <class F, class... Args>
    static constexpr auto with_handles(const F& f, const Args&... x) {
        return f(detail::first_batched<Tag>(x...), x...);
    }

    template <class Op, class... Args>
    static constexpr auto run(const typename Op::attributes& attributes, const shape* target,
                              std::source_location where, const Args&... args) {
        const auto& like = detail::first_batched<Tag>(args...);
        // Errors are reported for the shape of one example.
        constexpr int count = sizeof...(Args);
        const operand_info in[count]{operand_info{args.type(), shape_of(args)}...};
        inference io{in, count, target, in[0].type, {}, nullptr};
        Op::infer(attributes, io);
        if (io.error != nullptr) mode_transforms<Mode>::refuse(like.whole(), io.error, in[0].dims, in[count - 1].dims);
        const detail::batch_context<batched_mode> context{like.count(), target, where};
        return wrapped(batching_rule<Op>::apply(context, attributes, args...));
    }
};

} // namespace tapegraph
