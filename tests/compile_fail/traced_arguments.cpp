// A model that takes another number of inputs, and has its graph made at run time.
// expect: a model is called with a scope and its inputs, nodes
#include <tapegraph/tapegraph.hpp>
#include <tapegraph/traced.hpp>

namespace tg = tapegraph;

int main(int argc, char**) {
    auto model = tg::compile<tg::traced>([argc](auto scope) { return scope; }, tg::spec<float, tg::dyn, 2>{},
                                         tg::mean_squared_error{}, tg::adam{});
    return static_cast<int>(model.parameter_count());
}
