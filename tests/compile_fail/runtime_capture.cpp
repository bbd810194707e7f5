// The same, captured.
// expect: give it to tg::compile<tg::traced>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

int main(int argc, char**) {
    auto model = tg::compile<tg::graph>([argc](auto scope, auto x) { return tg::dense(scope / "s", x, {.units = argc}); },
                                        tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{}, tg::adam{});
}
