#pragma once

#include <fuzz/program.hpp>
#include <support/compiled_modes.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

/// What generated sources call: a random program compiled into a graph and run eagerly, bits compared.

namespace tg = tapegraph;

namespace tapegraph::fuzz {

/// An inner instruction: part of the formulas that use it, or a value of its own where everything is sealed.
template <bool Sealed, class E>
constexpr auto inner(const E& e) {
    if constexpr (Sealed)
        return tg::eval(e);
    else
        return e;
}

/// The fuzzer's own leaves, so that a program found at run time sees the same numbers here.
template <class T>
tensor<T> drawn_reals(std::uint64_t seed, const shape& dims, double low, double high) {
    choices random(seed);
    auto t = tensor<T>::uninitialized(dims);
    for (std::int64_t i = 0; i < t.size(); ++i) t.mutable_data()[i] = static_cast<T>(random.between(low, high));
    return t;
}
inline tensor<bool> drawn_conditions(std::uint64_t seed, const shape& dims) {
    choices random(seed);
    auto t = tensor<bool>::uninitialized(dims);
    for (std::int64_t i = 0; i < t.size(); ++i) t.mutable_data()[i] = random.chance(0.5);
    return t;
}
inline tensor<std::int32_t> drawn_indices(std::uint64_t seed, const shape& dims, std::int64_t limit) {
    choices random(seed);
    auto t = tensor<std::int32_t>::uninitialized(dims);
    for (std::int64_t i = 0; i < t.size(); ++i)
        t.mutable_data()[i] = static_cast<std::int32_t>(random.whole(0, limit - 1));
    return t;
}

template <class R>
auto sealed(const R& r) {
    return tapegraph::detail::map_results([](const auto& each) { return eval(each); }, r);
}

/// The sum of the squares of all floating-point results by every floating-point argument, with a tape around the function.
template <class Mode, class F, class... Specs>
std::vector<any_tensor> gradients_on_tape(const F& f, Specs... specs, tensor<typename Specs::element_type>... x) {
    auto called = tg::function<Mode>(f, specs...);
    gradient_tape tape;
    std::vector<any_tensor> sources;
    const auto watch = [&]<class T>(tensor<T>& t) {
        if constexpr (std::is_floating_point_v<T>) {
            tape.watch(t);
            sources.push_back(t);
        }
    };
    (watch(x), ...);
    any_tensor loss;
    std::apply(
        [&](const auto&... y) {
            const auto add = [&]<class T>(const tensor<T>& each) {
                if constexpr (std::is_floating_point_v<T>) {
                    const tensor<T> part = sum(square(each));
                    if (!loss.has_storage())
                        loss = part;
                    else if (loss.type() == part.type())
                        loss = tensor<T>(tensor<T>(loss) * T(0.5) + part);
                }
            };
            (add(y), ...);
        },
        called(x...));
    return loss.has_storage() ? tape.gradient(loss, sources) : std::vector<any_tensor>{};
}

/// Values and gradients in both modes, and values with and without seals inside formulas: the same bits.
template <class Whole, template <bool> class Program, class... Specs>
void check_compiled(std::tuple<Specs...>, const tensor<typename Specs::element_type>&... x) {
    testing::compiled_modes run(Whole{}, Specs{}...);
    const std::string modes = run.compare(x...);
    CHECK_MESSAGE(modes.empty(), modes);
    const std::string tapes =
        testing::difference(gradients_on_tape<graph, Program<false>, Specs...>({}, Specs{}..., x...),
                            gradients_on_tape<eager, Program<false>, Specs...>({}, Specs{}..., x...));
    CHECK_MESSAGE(tapes.empty(), "under a tape: " << tapes);
    const std::string seals =
        testing::difference(testing::flattened(sealed(Program<true>{}(x...))),
                            testing::flattened(sealed(Program<false>{}(x...))));
    CHECK_MESSAGE(seals.empty(), "sealed everywhere (named graph) and as formulas (named eager): " << seals);
}

} // namespace tapegraph::fuzz
