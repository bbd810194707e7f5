// Gradients that somebody else has taken are not of a scaled loss.
// expect: loss_scaling: it scales the loss of minimize; gradients from elsewhere are not scaled
// expect-longer-clang: clang lists the overloads it could not take
#include <tapegraph/nn/optimizers/loss_scaling.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct model {
    constexpr auto operator()(auto scope) const {
        const auto w = scope.template variable<float>("w", {2});
        const auto pairs = tg::compute_gradients(sum(square(w)));
        return tg::fetches{tg::fetch("train", tg::apply_gradients(pairs, tg::chain{tg::loss_scaling{}, tg::sgd{}}))};
    }
};

int main() {
    tg::session<model> session;
    session.run<"train">();
}
