#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/transforms.hpp>
#include <tapegraph/expr/differentiate.hpp>

#include <tuple>

namespace tapegraph {

/// Options of a `gradient_tape`.
struct tape_options {
    /// Allows several calls of gradient(), and records the operations of these calls.
    bool persistent = false;
};

/// Records operations on watched tensors while it lives. Tapes of one thread may be nested: an
/// outer tape records the gradients that an inner one computes.
///
///     tg::gradient_tape tape;
///     tape.watch(w);
///     tg::tensor<float> loss = mean(square(matmul(x, w) - y));
///     tg::tensor<float> dw = tape.gradient(loss, w);
class gradient_tape {
public:
    explicit gradient_tape(tape_options options = {}) : options_(options) {
        auto& tape = detail::tape_storage::instance();
        first_ = tape.length();
        tape.start();
        if (options_.persistent) tape.persist(1);
    }
    gradient_tape(const gradient_tape&) = delete;
    gradient_tape& operator=(const gradient_tape&) = delete;
    ~gradient_tape() {
        auto& tape = detail::tape_storage::instance();
        if (options_.persistent) tape.persist(-1);
        tape.close(recording_);
    }

    /// Makes tensors sources: operations that depend on them are recorded from here on.
    template <class... T>
        requires(is_floating_type<T> && ...)
    void watch(tensor<T>&... tensors) {
        auto& tape = detail::tape_storage::instance();
        // A tensor that an outer tape already follows keeps its place, so that both tapes see it.
        ((tape.tracks(tensors) ? void() : tensors.set_tape_index(tape.watch())), ...);
    }

    template <class... Given>
    void watch(const Given&...)
        TG_REFUSES("watch marks tensors as sources: tg::tensor<float> w = ...; neither const nor temporary, no formula, "
                   "and of a floating-point type");

    /// Recording pauses; `resume_recording` continues it.
    void stop_recording() {
        if (recording_) detail::tape_storage::instance().stop();
        recording_ = false;
    }
    /// Operations are recorded again; of no effect after `gradient()` of a tape that is not persistent.
    void resume_recording() {
        if (!recording_ && !used_) detail::tape_storage::instance().resume();
        recording_ = !used_;
    }

    /// d(sum of y)/dx, of x's shape, and a tuple of these for several x; zeros where y does not depend on x. Throws argument_error
    /// for a source that was not watched and for a second call on a tape that is not persistent.
    template <tensor_like Y, handle... X>
    auto gradient(const Y& y, const X&... x) {
        const auto value = eval(y);
        prepare();
        detail::backward_pass walk(value.tape_index().index + 1);
        if (detail::tape_storage::instance().knows(value.tape_index())) {
            std::vector<char> keep(static_cast<std::size_t>(value.tape_index().index + 1));
            (mark(keep, x), ...);
            walk.run(value, first_, keep);
        }
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            std::tuple<X...> result{X(adjoint_of(walk, x, static_cast<int>(I)))...};
            finish();
            return detail::unwrapped(result);
        }(std::index_sequence_for<X...>{});
    }

    /// Derivatives for sources whose number and element types are known only at run time.
    template <class Tensor = any_tensor> // a template, like sweeps
    std::vector<any_tensor> gradient(const any_tensor& y, const std::vector<any_tensor>& x) {
        prepare();
        detail::basic_backward_pass<Tensor> walk(y.tape_index().index + 1);
        if (detail::tape_storage::instance().knows(y.tape_index())) {
            std::vector<char> keep(static_cast<std::size_t>(y.tape_index().index + 1));
            for (const any_tensor& source : x) mark(keep, source);
            walk.run(y, first_, keep);
        }
        std::vector<any_tensor> result;
        result.reserve(x.size());
        for (const any_tensor& source : x) result.push_back(adjoint_of(walk, source, static_cast<int>(result.size())));
        finish();
        return result;
    }

    template <class... Given>
        requires(!std::is_same_v<Given, std::vector<any_tensor>> && ...)
    refused_value gradient(const Given&...)
        TG_REFUSES("gradient takes a tensor or formula, and tensors that were watched: tape.gradient(loss, w)");

private:
    void prepare() {
        if (used_) throw argument_error("gradient_tape: gradient() was already called; a persistent tape allows more calls");
        if (!options_.persistent) {
            stop_recording();
            used_ = true;
        }
    }
    void finish() {
        auto& tape = detail::tape_storage::instance();
        if (!options_.persistent && tape.open() == 1) tape.clear(0); // the records' buffers are no longer needed
    }
    static void mark(std::vector<char>& keep, const any_tensor& x) {
        const tape_index p = x.tape_index();
        if (detail::tape_storage::instance().knows(p) && p.index < static_cast<int>(keep.size()))
            keep[static_cast<std::size_t>(p.index)] = 1;
    }
    static any_tensor adjoint_of(const detail::backward_pass& walk, const any_tensor& x, int position);

    tape_options options_;
    int first_ = 0;
    bool recording_ = true, used_ = false;
};

#if TG_DEFINES(eager)
TG_DEFINITION any_tensor gradient_tape::adjoint_of(const detail::backward_pass& walk, const any_tensor& x,
                                                   int position) {
    if (!detail::tape_storage::instance().knows(x.tape_index()))
        throw argument_error("gradient_tape: source " + std::to_string(position) + " of shape " + to_string(x.shape()) +
                             " is not watched");
    if (const any_tensor* found = walk.find(x.tape_index())) return *found;
    any_tensor zero(x.type(), x.shape());
    std::memset(zero.write(), 0, static_cast<std::size_t>(zero.size()) * size_of(zero.type()));
    return zero;
}
#endif
TG_COMPILED(eager, std::vector<any_tensor> gradient_tape::gradient<any_tensor>(const any_tensor&,
                                                                                        const std::vector<any_tensor>&))

namespace detail {
/// Makes a function's argument a source with a place of its own on the tape. Other uses of the
/// tensor, such as the function's captures, keep their place on an outer tape and are constants for
/// this function.
template <class T>
tensor<T> as_source(const tensor<T>& argument) {
    static_assert(ir::detail::is_floating(dtype_of<T>), "only floating-point tensors have derivatives");
    tape_storage& tape = tape_storage::instance();
    const shape same = argument.shape();
    if (tape.tracks(argument)) return tapegraph::invoke<reshape_op>({}, &same, std::source_location{}, argument);
    tensor<T> source = argument;
    source.set_tape_index(tape.watch());
    return source;
}
} // namespace detail

template <class F, class... Args>
auto eager::value_and_gradient(const F& f, const Args&... args) {
    gradient_tape tape;
    const std::tuple sources{detail::as_source(seal(args, std::source_location{}))...};
    return std::apply(
        [&](const auto&... x) {
            const auto y = eval(f(x...));
            auto result = tape.gradient(y, x...);
            return value_with_gradient<std::remove_cvref_t<decltype(y)>, decltype(result)>{y, result};
        },
        sources);
}

} // namespace tapegraph
