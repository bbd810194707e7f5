#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>
#include <tapegraph/ops/ops.hpp>

#include <support/stored_numbers.hpp>

#include <doctest/doctest.h>

namespace stored_gru_test {

/// A GRU, simple recurrent layers and their gradients as PyTorch 2.15 computes them in double; `numbers` is that of
/// support/stored_numbers.hpp. PyTorch's weights are transposed, and its gates of a GRU in the order r, z, n:
///
///     x, w, r, b, h = numbers(2, 3, 2, seed=1), numbers(2, 6, seed=2), numbers(2, 6, seed=3), numbers(2, 6, seed=4, scale=0.5),
///                     numbers(2, 2, seed=5)
///     torch_order = lambda m: torch.cat([m[..., 2:4], m[..., 0:2], m[..., 4:6]], -1)
///     y, hn = functional_call(torch.nn.GRU(2, 2, batch_first=True),
///         {"weight_ih_l0": torch_order(w).T, "weight_hh_l0": torch_order(r).T,
///          "bias_ih_l0": torch_order(b[0]), "bias_hh_l0": torch_order(b[1])}, (x, h[None]))
///     torch.autograd.grad((y * y).sum() + hn.sum(), (x, w, r, b, h))
///
/// and the same of torch.nn.RNN(2, 2, nonlinearity="tanh" or "relu", batch_first=True) with
///     w, r, b = numbers(2, 2, seed=2), numbers(2, 2, seed=3), numbers(2, seed=4, scale=0.5), and bias_hh_l0 zero.

using namespace stored_numbers;

TEST_CASE("stored: gru") {
    auto x = numbers({2, 3, 2}, 1), w = numbers({2, 6}, 2), r = numbers({2, 6}, 3), b = numbers({2, 6}, 4, 0.5);
    auto h = numbers({2, 2}, 5);
    tg::gradient_tape tape;
    for (auto* t : {&x, &w, &r, &b, &h}) tape.watch(*t);
    const auto [y, hidden] = gru_with_state(x, w, r, b, {.return_sequences = true}, tg::initial_state{h});
    CHECK(near(y, {-0.06855142353, -0.2207433098, -0.07640700412, -0.06505468466, -0.1565833218, -0.1613326616,
                   -0.09308372093, 0.5785833755, -0.4661604301, 0.682582504, -0.1428104749, 0.4206662257}));
    CHECK(hidden.to_vector() == tensor<double>(tg::take(y, -1, 1)).to_vector());
    const tensor<double> loss = sum(square(y)) + sum(hidden);
    const auto [dx, dw, dr, db, dh] = tape.gradient(loss, x, w, r, b, h);
    CHECK(near(dx, {0.1640048267, -0.1934398103, -0.01707407237, -0.09447385823, -0.2856071847, 0.02920714747,
                    -0.3875546434, 0.4265563616, -0.9207485614, 0.373674513, -0.6410569066, -0.3636463875}));
    CHECK(near(dw, {0.1450080545, 0.4618688075, -0.03468463228, 0.002438347868, 0.3019729776, 0.04869221013,
                    -0.124722937, -0.7003870732, 0.0588432697, 0.01587963806, -0.4367743317, 0.6781449831}));
    CHECK(near(dr, {0.03774725864, -0.3083557241, 0.02900454565, 0.03239796432, -0.06914327663, -0.222431595,
                    -0.09567392564, 0.2717253887, -0.02321397476, -0.03060210579, 0.04996979511, 0.5542997235}));
    CHECK(near(db, {-0.3531224127, -0.05243842131, -0.06660527498, -0.08037086018, 0.3460911481, 1.653694289,
                    -0.3531224127, -0.05243842131, -0.06660527498, -0.08037086018, 0.01848522711, 1.090977854}));
    CHECK(near(dh, {0.02586540256, -0.09915210254, 0.04915571459, 0.2645364412}));
}

namespace {

struct stored_rnn {
    std::vector<double> y, dx, dw, dr, db, dh;
};

void check_rnn(tg::cell_activation activation, const stored_rnn& want) {
    auto x = numbers({2, 3, 2}, 1), w = numbers({2, 2}, 2), r = numbers({2, 2}, 3), b = numbers({2}, 4, 0.5);
    auto h = numbers({2, 2}, 5);
    tg::gradient_tape tape;
    for (auto* t : {&x, &w, &r, &b, &h}) tape.watch(*t);
    const auto [y, hidden] =
        simple_rnn_with_state(x, w, r, b, {.activation = activation, .return_sequences = true}, tg::initial_state{h});
    CHECK(near(y, want.y));
    const tensor<double> loss = sum(square(y)) + sum(hidden);
    const auto [dx, dw, dr, db, dh] = tape.gradient(loss, x, w, r, b, h);
    CHECK(near(dx, want.dx));
    CHECK(near(dw, want.dw));
    CHECK(near(dr, want.dr));
    CHECK(near(db, want.db));
    CHECK(near(dh, want.dh));
}

} // namespace

TEST_CASE("stored: simple_rnn") {
    check_rnn(tg::cell_activation::tanh,
              {.y = {0.5567419605, 0.1436280565, 0.8151238253, -0.5880763295, 0.7689840741, -0.2022900784,
                     -0.6873817143, 0.2546047079, -0.2908299662, 0.8148831168, 0.8773365701, -0.4073724619},
               .dx = {1.310634144, -0.2992307926, 0.2153116113, -0.6578069823, 1.141003022, -0.2966220898,
                      -0.9834278849, 0.6091121807, -0.6044823983, 0.8369987663, 0.662440638, -0.30535022},
               .dw = {2.12028658, 0.08459372359, -2.648065387, 0.2129051884},
               .dr = {0.8596914877, -0.5137654192, -0.8728839963, -0.8552466533},
               .db = {1.500853563, 1.323440632},
               .dh = {-0.7538670715, 0.1063417684, 0.1092289189, -0.3460447494}});
    check_rnn(tg::cell_activation::relu,
              {.y = {0.6280991736, 0.1446280992, 1.135987979, 0, 1.20251349, 0, 0, 0.2603305785, 0, 0.5138993238,
                     1.228194795, 0},
               .dx = {1.260135142, -0.04768234445, 1.962428051, -1.24881785, 3.405026979, -2.16683535, -0.09414983837,
                      -0.3295244343, 0.4153941072, 1.453879375, 3.456389591, -2.199520649},
               .dw = {4.615926293, -0.2464918074, -3.485415867, 1.181691021},
               .dr = {4.904706281, -0.3235641028, 0.9822627153, -0.1256480481},
               .db = {9.901640418, 2.769709877},
               .dh = {-1.009678162, -0.06392261863, 0.4707491919, 0.2353745959}});
}

} // namespace stored_gru_test
