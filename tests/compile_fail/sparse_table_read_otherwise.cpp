// expect: a variable with sparse gradients is read otherwise than by gather_rows
// expect: f32[9,4]
// expect: words
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

// The table is also the last layer's kernel.
struct tied {
    constexpr auto operator()(auto scope, auto x) const {
        const auto table = (scope / "words").template variable<float>("table", {9, 4});
        const auto h = sum(scope.gather_rows(table, x), 1);
        return tg::matmul(h, tg::transpose(table));
    }
};

int main() {
    auto model =
        tg::compile<tg::graph>(tied{}, tg::spec<int, tg::dyn, 3>{}, tg::sparse_softmax_cross_entropy{}, tg::sgd{});
}
