#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/ops/ops.hpp>

#include <support/stored_numbers.hpp>

#include <doctest/doctest.h>

namespace stored_recurrent_test {

/// An LSTM and its gradients as PyTorch 2.15 computes them in double. Its gates stand in the same order (i, f, g, o) and its
/// weights are transposed; it has two biases, of which one is zero here; `numbers` is that of support/stored_numbers.hpp:
///
///     x, w, r, b = numbers(2, 3, 2, seed=1), numbers(2, 8, seed=2), numbers(2, 8, seed=3), numbers(8, seed=4, scale=0.5)
///     h, c = numbers(2, 2, seed=5), numbers(2, 2, seed=6)
///     y, (hn, cn) = functional_call(torch.nn.LSTM(2, 2, batch_first=True),
///         {"weight_ih_l0": w.T, "weight_hh_l0": r.T, "bias_ih_l0": b, "bias_hh_l0": torch.zeros(8)}, (x, (h[None], c[None])))
///     torch.autograd.grad((y * y).sum() + hn.sum() + (cn * cn).sum(), (x, w, r, b, h, c))

using namespace stored_numbers;

TEST_CASE("stored: lstm") {
    auto x = numbers({2, 3, 2}, 1), w = numbers({2, 8}, 2), r = numbers({2, 8}, 3), b = numbers({8}, 4, 0.5);
    auto h = numbers({2, 2}, 5), c = numbers({2, 2}, 6);
    tg::gradient_tape tape;
    for (auto* t : {&x, &w, &r, &b, &h, &c}) tape.watch(*t);
    const auto [y, hidden, cell] = lstm_with_state(x, w, r, b, {.return_sequences = true}, tg::initial_state{h, c});
    CHECK(near(y, {0.06729276586, 0.01872739456, 0.05373720408, -0.04916880929, -0.125853878, -0.07027089526,
                   -0.1403851267, 0.2037545541, -0.2576107145, 0.1802209398, -0.1459068645, 0.1405412378}));
    CHECK(near(cell, {-0.2281694695, -0.2431784844, -0.2359434962, 0.2859907168}));
    CHECK(hidden.to_vector() == tensor<double>(tg::take(y, -1, 1)).to_vector());
    const tensor<double> loss = sum(square(y)) + sum(hidden) + sum(square(cell));
    const auto [dx, dw, dr, db, dh, dc] = tape.gradient(loss, x, w, r, b, h, c);
    CHECK(near(dx, {0.01577845271, -0.04882417075, 0.1111862375, -0.1055320952, 0.1481181941, -0.03915628082,
                    0.03600993177, 0.003591846872, 0.0770298068, 0.1345543316, -0.6098923122, 0.593005569}));
    CHECK(near(dw, {-0.01624210941, -0.09695692928, -0.03536415496, -0.01415205602, 0.07674633705, -0.05955557917,
                    -0.1020263663, -0.05445206693, 0.04065666668, 0.2319886982, 0.03466854219, -0.04160906234,
                    -0.2066482852, -0.3190298464, 0.1022875673, -0.04787595671}));
    CHECK(near(dr, {0.001477682829, 0.02703220072, 0.003979636007, -0.05751494561, -0.007335402485, -0.1908286463,
                    0.01515127747, -0.009423860915, 0.002273875314, -0.03602640652, -0.02546137691, 0.02873288137,
                    0.003037492565, 0.1628488638, -0.03225420354, -0.01310076008}));
    CHECK(near(db, {0.04062908572, 0.2000820581, 0.08114933603, 0.3778997774, -0.275745187, 0.5009724587, 0.04257947675,
                    0.08872258137}));
    CHECK(near(dh, {0.01990218323, 0.02795437864, -0.2115530202, 0.05486774256}));
    CHECK(near(dc, {0.02756894132, -0.0610428829, -0.08316741655, 0.2836634164}));
}

TEST_CASE("lstm of bfloat16 is that of floats, rounded") {
    const auto rounded = [](const tensor<double>& t) { return tensor<tg::bfloat16>(tg::cast<tg::bfloat16>(t)); };
    const auto wide = [](const tensor<tg::bfloat16>& t) { return tensor<float>(tg::cast<float>(t)); };
    const auto x = rounded(numbers({2, 3, 2}, 1)), w = rounded(numbers({2, 8}, 2)), b = rounded(numbers({8}, 4));
    auto r = rounded(numbers({2, 8}, 3));
    tg::gradient_tape tape({.persistent = true});
    tape.watch(r);
    const tensor<tg::bfloat16> y = lstm(x, w, r, b, {.return_sequences = true});
    // The projection is rounded twice; from there on the floats are the same ones.
    const tensor<tg::bfloat16> product = matmul(x, w), projected = product + b;
    auto same = wide(r);
    tape.watch(same);
    const auto expected = lstm(wide(projected), tg::eye<float>(same, 8), same, tg::no_bias, {.return_sequences = true});
    const auto got = wide(y), want = wide(tensor<tg::bfloat16>(tg::cast<tg::bfloat16>(expected)));
    CHECK(got.to_vector() == want.to_vector());
    // States and gates were rounded, too: by 2^-9, some dozen of them to a sum.
    const tensor<tg::bfloat16> loss = sum(y * y);
    const tensor<float> other = sum(expected * expected);
    const auto rough = tape.gradient(loss, r);
    const auto wanted = tape.gradient(other, same);
    const tensor<float> dr = wide(rough);
    for (std::int64_t i = 0; i < dr.size(); ++i) CHECK(std::abs(dr.data()[i] - wanted.data()[i]) < 0.02);
}

} // namespace stored_recurrent_test
