#include <operations/builders.hpp>

#include <cmath>

/// Constants made beside an operand, and functions whose derivative is not simply that of their value.

namespace tapegraph::testing {

namespace constants {

// Constants that depend on an operand for its mode alone, by themselves and beside it.
operation fill_operation() {
    return one_operand<double>(
        "fill",
        [](const auto& x, const attributes& with) { return fill<double>(x, shape_of_words(with.whole), with.real[0]); },
        [](choices& random, const extents& x, attributes& with) {
            with.whole = x;
            with.real = {random.pick(std::vector<double>{0, 1, -1, 0.5, 2})};
            return true;
        },
        [](const attributes& with) {
            return "tg::fill<element>($, " + braces(with.whole) + ", " + number_text(with.real[0]) + ")";
        },
        [](const array&, const attributes& with) { return array(with.whole, static_cast<real>(with.real[0])); });
}

template <bool Ends>
operation numbered_operation(const char* name) {
    operation made = one_operand<double>(
        name,
        [](const auto& x, const attributes& with) {
            if constexpr (Ends)
                return x + linspace<double>(x, with.real[0], with.real[1], with.whole[0]);
            else
                return x * arange<double>(x, with.whole[0], with.real[0], with.real[1]);
        },
        [](choices& random, const extents& x, attributes& with) {
            with.whole = {x.empty() ? 0 : x.back()};
            with.real = {random.pick(std::vector<double>{0, 1, -1}), random.pick(std::vector<double>{1, 0.5, -2})};
            return !x.empty();
        },
        [](const attributes& with) {
            const std::string first = number_text(with.real[0]), second = number_text(with.real[1]),
                              count = text_of(with.whole[0]);
            return Ends ? "[](const auto& x) { return x + tg::linspace<element>(x, " + first + ", " + second + ", " +
                              count + "); }($)"
                        : "[](const auto& x) { return x * tg::arange<element>(x, " + count + ", " + first + ", " +
                              second + "); }($)";
        },
        [](const array& x, const attributes& with) {
            array line({with.whole[0]});
            const real first = static_cast<real>(with.real[0]), second = static_cast<real>(with.real[1]);
            const real gaps = static_cast<real>(std::max<std::int64_t>(line.size() - 1, 1));
            const real step = Ends ? (second - first) / gaps : second;
            for (std::int64_t i = 0; i < line.size(); ++i) line[i] = first + step * static_cast<real>(i);
            return map({x, line}, [](const real* v) { return Ends ? v[0] + v[1] : v[0] * v[1]; });
        });
    return made;
}

// A derivative that is not the value's, and a function that is computed again for its derivative.
operation custom_operation() {
    operation made = one_operand<double>(
        "custom_gradient",
        [](const auto& x, const attributes&) {
            return custom_gradient([](const auto& at) { return eval(square(at)); },
                                   [](const auto& dy, const auto& at) { return dy * (at + 3); })(x);
        },
        [](choices&, const extents&, attributes&) { return true; },
        [](const attributes&) {
            return std::string(
                "tg::custom_gradient([](const auto& at) { return tg::eval(square(at)); }, [](const auto& "
                "dy, const auto& at) { return dy * (at + 3); })($)");
        },
        [](const array& x, const attributes&) { return map({x}, [](const real* v) { return v[0] * v[0]; }); });
    made.domains = {{-30, 30}};
    made.smooth = false;
    return made;
}
operation checkpoint_operation() {
    operation made = one_operand<double>(
        "checkpoint",
        [](const auto& x, const attributes&) {
            return checkpoint([](const auto& at) { return eval(eval(tanh(at)) * at); })(x);
        },
        [](choices&, const extents&, attributes&) { return true; },
        [](const attributes&) {
            return std::string("tg::checkpoint([](const auto& at) { return tg::eval(tg::eval(tanh(at)) * at); })($)");
        },
        [](const array& x, const attributes&) {
            return map({x}, [](const real* v) { return std::tanh(v[0]) * v[0]; });
        });
    return made;
}

} // namespace constants

std::vector<operation> constant_operations() {
    using namespace constants;
    return {fill_operation(), numbered_operation<false>("arange"), numbered_operation<true>("linspace"),
            custom_operation(), checkpoint_operation()};
}

} // namespace tapegraph::testing
