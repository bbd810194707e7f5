// Loops over values cannot run in graph mode.
// expect: with_numbers: arguments are tensors of double, or of float, in eager mode; in graph mode write the function with tensors
// expect-errors-clang: 2, because it names the template and its instance
// expect-longer: the compiler says how the call was reached
#include <tapegraph/number_tensor.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main() {
    constexpr auto first = tg::with_numbers([](const auto& x) { return x[0]; });
    auto f = tg::function<tg::graph>([](const auto& x) { return decltype(first){}(x); }, tg::spec<double, 2>{});
    f(tg::tensor<double>{1, 2});
}
