// expect: model.load needs #include <tapegraph/io/weights.hpp>
// expect-longer: the headers on the way to the class of all models are a line each
// expect-elsewhere: the check stands in the function that is called, which the compiler names first
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct line {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "d", x, {.units = 1}); }
};

int main() {
    auto model = tg::compile<tg::eager>(line{}, tg::spec<float, tg::dyn, 2>{});
    model.load("weights.safetensors");
}
