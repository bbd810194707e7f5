// expect: gather_rows: the table is not a variable
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct scaled {
    constexpr auto operator()(auto scope, auto x) const {
        const auto table = (scope / "words").template variable<float>("table", {9, 4});
        return scope.gather_rows(eval(table * 2), x);
    }
};

int main() { auto model = tg::compile<tg::graph>(scaled{}, tg::spec<int, tg::dyn, 3>{}); }
