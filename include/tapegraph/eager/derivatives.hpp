#pragma once

#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/expr/jacobian.hpp>

/// vjp, jvp, hvp, jacobian and hessian in eager mode: the function runs once under a tape, and as
/// many sweeps as needed go over the records in either direction. While an outer tape records, the
/// sweeps are recorded, too.

namespace tapegraph::detail {

// These are templates, like recorded_function, so that only programs that use these derivatives
// compile their kernels.
namespace jvp_kernels {

template <class G>
any_tensor by_type(dtype type, const G& g) {
    return type == dtype::f64 ? g(0.0) : g(0.0f);
}
template <class Tensor>
Tensor multiply_add(const Tensor* sum, const Tensor& a, const Tensor& b) {
    return by_type(a.type(), [&]<class T>(T) -> Tensor {
        const tensor<T> x(a), y(b);
        return sum == nullptr ? tensor<T>(x * y) : tensor<T>(tensor<T>(*sum) + x * y);
    });
}
template <class Tensor>
Tensor add(const Tensor& a, const Tensor& b) {
    return add_adjoints(a, b);
}
template <class Tensor>
Tensor converted(const Tensor& a, dtype type) {
    if (a.type() == type) return a;
    return by_type(a.type(), [&]<class T>(T) -> Tensor {
        if (type == dtype::f64) return tensor<double>(cast<double>(tensor<T>(a)));
        return tensor<float>(cast<float>(tensor<T>(a)));
    });
}
template <class Tensor>
bool formula_tangent(tape_record& base, const jvp_pass& walk, Tensor& tangent) {
    return formula_record::forward(base, walk, tangent);
}
template <class Tensor>
bool node_tangent(tape_record& base, const jvp_pass& walk, Tensor& tangent) {
    return node_record::forward(base, walk, tangent);
}
template <class Tensor>
inline constexpr forward_kernels kernels{&multiply_add<Tensor>,    &add<Tensor>,
                                         &converted<Tensor>,       &transposed_tangent<Tensor>,
                                         &formula_tangent<Tensor>, &node_tangent<Tensor>};

} // namespace jvp_kernels

/// A function's part of the tape, from sources to results, as needed by both sweeps.
template <class Tensor>
class recorded_function {
public:
    using handles = std::vector<Tensor>;

    /// A direction without a buffer counts as zero.
    handles push(const handles& tangents) {
        jvp_pass walk(base_, end_, jvp_kernels::kernels<Tensor>);
        for (std::size_t j = 0; j < sources_.size(); ++j)
            if (tangents[j].has_storage()) walk.set(sources_[j].tape_index().index, tangents[j]);
        walk.run(first_, end_);
        handles found;
        for (const any_tensor& y : results_) {
            const any_tensor* const tangent = walk.find(y);
            found.push_back(tangent != nullptr ? *tangent : zeros_of(y.type(), y.shape()));
        }
        return found;
    }
    handles pull(const handles& cotangents) {
        backward_pass walk(end_);
        std::vector<char> keep(static_cast<std::size_t>(end_));
        for (const any_tensor& x : sources_) keep[static_cast<std::size_t>(x.tape_index().index)] = 1;
        for (std::size_t k = 0; k < results_.size(); ++k)
            if (cotangents[k].has_storage() && walk.wants(results_[k])) walk.add(results_[k], cotangents[k]);
        walk.run(end_ - 1, first_, keep);
        handles found;
        for (const any_tensor& x : sources_) {
            const any_tensor* const adjoint = walk.find(x.tape_index());
            found.push_back(adjoint != nullptr ? *adjoint : zeros_of(x.type(), x.shape()));
        }
        return found;
    }

    std::vector<std::int64_t> result_sizes() const { return sizes(results_); }
    std::vector<std::int64_t> source_sizes() const { return sizes(sources_); }
    bool allows(std::int64_t) const { return true; }
    handles pull_one(int k, std::int64_t i) { return pull(one_hot(results_, k, i)); }
    handles push_one(int j, std::int64_t i) { return push(one_hot(sources_, j, i)); }

    any_tensor block(const handles& lines, int k, int j, bool forward) {
        const any_tensor &y = results_[static_cast<std::size_t>(k)], &x = sources_[static_cast<std::size_t>(j)];
        shape target = y.shape();
        for (int i = 0; i < x.rank(); ++i) target.push_back(x.shape()[i]);
        if (target.overflow())
            throw shape_error("jacobian: rank above 8: result of shape " + to_string(y.shape()) +
                              " by argument of shape " + to_string(x.shape()));
        if (lines.empty()) return zeros_of(x.type(), target);
        return x.type() == dtype::f64 ? stacked<double>(lines, target, forward)
                                      : stacked<float>(lines, target, forward);
    }

protected:
    recorded_function() : base_(tape_storage::instance().length()) {}

    template <class T>
    tensor<T> own(const tensor<T>& argument) {
        const tensor<T> x = as_source(argument);
        sources_.push_back(x);
        return x;
    }
    static any_tensor checked(const any_tensor& given, const any_tensor& like, const like_words& words,
                              std::size_t position) {
        if (!ir::detail::is_floating(like.type())) return {};
        if (given.type() == like.type() && given.shape() == like.shape()) return given;
        throw shape_error(std::string(words.shape) + ": " + words.role + " " + std::to_string(position) + " is " +
                          name_of(given.type()) + to_string(given.shape()) + ", expected " + name_of(like.type()) +
                          to_string(like.shape()));
    }

    // While it lives, checkpoints in f record their operations.
    class forward_wish {
    public:
        forward_wish() { tape_storage::instance().want_forward(1); }
        forward_wish(const forward_wish&) = delete;
        forward_wish& operator=(const forward_wish&) = delete;
        ~forward_wish() { end(); }
        void end() {
            if (!ended_) tape_storage::instance().want_forward(-1);
            ended_ = true;
        }

    private:
        bool ended_ = false;
    };

    gradient_tape tape_;
    forward_wish wish_;
    handles sources_, results_;
    int base_ = 0, first_ = 0, end_ = 0;

private:
    static std::vector<std::int64_t> sizes(const handles& of) {
        std::vector<std::int64_t> result;
        for (const any_tensor& each : of) result.push_back(each.size());
        return result;
    }
    static handles one_hot(const handles& like, int which, std::int64_t i) {
        handles result(like.size());
        const any_tensor& of = like[static_cast<std::size_t>(which)];
        if (!ir::detail::is_floating(of.type())) return result;
        any_tensor& seed = result[static_cast<std::size_t>(which)] = zeros_of(of.type(), of.shape());
        if (of.type() == dtype::f64)
            static_cast<double*>(seed.write())[i] = 1;
        else
            static_cast<float*>(seed.write())[i] = 1;
        return result;
    }
    // Stacks lines by an operation, which an outer tape can follow.
    template <class T>
    static any_tensor stacked(const handles& lines, const shape& target, bool forward) {
        const shape line{1, lines[0].size()};
        std::vector<tensor<T>> parts;
        for (const any_tensor& each : lines)
            parts.push_back(reshape(tensor<T>(jvp_kernels::converted(each, dtype_of<T>)), line));
        const tensor<T> all =
            invoke_list<concat_op>({0}, std::source_location{}, parts.data(), static_cast<int>(parts.size()));
        return forward ? reshape(tensor<T>(transpose(all)), target) : reshape(all, target);
    }
};

template <class F, class... X>
struct linearization<eager, F, X...> : recorded_function<any_tensor> {
    static constexpr int arity = sizeof...(X);
    using index = std::index_sequence_for<X...>;
    struct sealer {
        auto operator()(const auto& y) const { return eval(y); }
    };
    using arguments = std::tuple<decltype(eval(std::declval<const X&>()))...>;
    template <class... H>
    static auto called(const F& f, const std::tuple<H...>& x) {
        return map_results(sealer{}, std::apply(f, x));
    }
    using value_type = decltype(called(std::declval<const F&>(), std::declval<const arguments&>()));

    explicit linearization(const F& f, const X&... x) : value(traced(f, x...)) {
        tape_.stop_recording();
        wish_.end();
        end_ = tape_storage::instance().length();
        map_results([this](const auto& y) { return results_.push_back(y), 0; }, value);
    }

    template <class Directions>
    auto push(const Directions& directions, const char*) {
        const handles found = recorded_function<any_tensor>::push(matched(directions, sources_, direction_words));
        std::size_t k = 0;
        return map_results([&]<class H>(const H&) { return H(found[k++]); }, value);
    }
    template <class Cotangents>
    auto pull(const Cotangents& cotangents, const char*) {
        return typed(recorded_function<any_tensor>::pull(matched(cotangents, results_, cotangent_words)), 0, index{});
    }
    auto jacobian(sweep_direction direction) {
        const handles blocks = jacobian_blocks(*this, direction);
        std::size_t k = 0;
        return map_results([&](const auto&) { return unwrapped(typed(blocks, arity * k++, index{})); }, value);
    }

private:
    value_type traced(const F& f, const X&... x) {
        const arguments own_places{own(eval(x))...};
        first_ = tape_storage::instance().length();
        return called(f, own_places);
    }
    template <std::size_t... I>
    static auto typed(const handles& from, std::size_t first, std::index_sequence<I...>) {
        return arguments{std::tuple_element_t<I, arguments>(from[first + I])...};
    }
    // The tensors of a structure, one for each of `like`.
    template <class Given>
    static handles matched(const Given& given, const handles& like, const like_words& words) {
        handles found;
        map_results(
            [&]<class G>(const G& each) {
                if constexpr (scalar<G>) {
                    const double number = static_cast<double>(each);
                    const dtype type = found.size() < like.size() ? like[found.size()].type() : dtype::f64;
                    found.push_back(type == dtype::f64 ? any_tensor(tensor<double>(number))
                                                       : any_tensor(tensor<float>(static_cast<float>(number))));
                } else {
                    found.push_back(eval(each));
                }
                return 0;
            },
            given);
        if (found.size() != like.size())
            throw argument_error(std::string(words.number) + ": " + std::to_string(found.size()) + " given, " +
                                 std::to_string(like.size()) + " expected");
        for (std::size_t i = 0; i < found.size(); ++i) found[i] = checked(found[i], like[i], words, i);
        return found;
    }

public:
    value_type value;
};

} // namespace tapegraph::detail
