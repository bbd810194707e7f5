// No standard header before the import: the module's templates must find what they need.
import tapegraph;

#include <cstdio>

namespace tg = tapegraph;

int included(const tg::tensor<float>& x); // included.cpp

int main() {
    const tg::tensor<float> x{1, 2, 3};
    const auto f = [](auto v) { return sum(v * tanh(v)); };
    const auto eagerly = tg::gradient(f)(x);
    auto compiled = tg::function<tg::graph>(tg::gradient([](auto v) { return sum(v * tanh(v)); }), tg::spec<float, 3>{});
    const bool same = all_of(eagerly == compiled(x)).item();
    bool thrown = false;
    try {
        (void)(x + tg::tensor<float>{1, 2}); // a message made of strings
        (void)tg::eval(x + tg::tensor<float>{1, 2});
    } catch (const tg::shape_error& error) {
        thrown = true;
        std::printf("%s\n", error.what());
    }
    return same && thrown && included(x) == 3 ? 0 : 1;
}
