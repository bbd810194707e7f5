#include <tapegraph/nn/layers/attention.hpp>

#include <nn/layer_bench.hpp>
#include <support/stored_numbers.hpp>

namespace stored_attention_test {

/// Attention and its gradients as PyTorch 2.15 computes them in double; `numbers` is that of support/stored_numbers.hpp. PyTorch
/// keeps the heads' columns side by side, its weights transposed, and masks what is not seen:
///
///     q, v = numbers(2, 3, 4, seed=1), numbers(2, 5, 3, seed=2)
///     wq, wk, wv, wo = numbers(4, 2, 2, seed=3), numbers(3, 2, 2, seed=4), numbers(3, 2, 2, seed=5), numbers(2, 2, 4, seed=6)
///     bq, bk, bv = (numbers(2, 2, seed=s, scale=0.5) for s in (7, 8, 9)); bo = numbers(4, seed=10, scale=0.5)
///     hidden = torch.tensor([[[(n + 2 * t + s) % 3 == 0 for s in range(5)] for t in range(3)] for n in range(2)])
///     y, _ = functional_call(torch.nn.MultiheadAttention(4, 2, kdim=3, vdim=3, batch_first=True),
///         {"q_proj_weight": wq.reshape(4, 4).T, "k_proj_weight": wk.reshape(3, 4).T, "v_proj_weight": wv.reshape(3, 4).T,
///          "in_proj_bias": torch.cat([bq.flatten(), bk.flatten(), bv.flatten()]),
///          "out_proj.weight": wo.reshape(4, 4).T, "out_proj.bias": bo}, (q, v, v),
///         {"attn_mask": hidden.repeat_interleave(2, 0)})
///     torch.autograd.grad((y * y).sum(), (q, v, wq, wk, wv, wo, bq, bk, bv, bo))
///
/// (By the keys' bias it gives roundings of zero: it moves all scores of a step alike.)

using namespace nn_test;

TEST_CASE("stored: multi_head_attention") {
    using stored_numbers::near, stored_numbers::numbers;
    auto query = numbers({2, 3, 4}, 1), value = numbers({2, 5, 3}, 2);
    auto seen = tg::tensor<bool>::uninitialized({2, 3, 5});
    for (std::int64_t i = 0; i < seen.size(); ++i) seen.mutable_data()[i] = (i / 15 + 2 * (i / 5 % 3) + i % 5) % 3 != 0;
    layer_bench b;
    const auto run = [&]() -> tg::tensor<double> {
        return tg::multi_head_attention(b.scope() / "a", query, value, {.num_heads = 2, .key_dim = 2},
                                        tg::attention_mask{seen});
    };
    run();
    const std::vector<std::string> paths{"query/kernel", "key/kernel", "value/kernel", "attention_output/kernel",
                                         "query/bias",   "key/bias",   "value/bias",   "attention_output/bias"};
    std::int64_t seed = 3;
    for (const std::string& path : paths) {
        tg::variable& v = b.variables["a/" + path];
        v.assign(numbers(v.shape(), seed, seed < 7 ? 1 : 0.5));
        ++seed;
    }
    tg::gradient_tape tape;
    tape.watch(query);
    tape.watch(value);
    const auto y = run();
    CHECK(near(y, {0.2616440637,  0.3231711695, -0.9875352217, -0.03907956908, 0.1928451826,  -0.1840615166,
                   0.855791253,   0.1955596702, 0.9132654393,  -0.6254015738,  -0.1810049598, 0.809421759,
                   -0.2277511635, 0.2817460765, 0.2925741211,  -0.3543076908,  1.123688171,   -1.200002418,
                   0.5713030073,  1.443154929,  -0.2940138215, 1.009892726,    -0.9917100575, -0.7961333909}));
    const tg::tensor<double> loss = sum(square(y));
    std::vector<tg::any_tensor> sources{query, value};
    for (const std::string& path : paths)
        for (const auto& used : b.context.used)
            if (used.target->path() == "a/" + path) sources.push_back(used.handle);
    REQUIRE(sources.size() == 10);
    const auto gradients = tape.gradient(loss, sources);
    const std::vector<double> wanted[]{
        {0.125010318,   -0.715556059,  0.7748740572,  -0.0242924779, -0.1800290997, 0.2602392511,
         -0.1032867114, -0.2181906526, -0.8752174001, 1.131190743,   -0.3945713293, -0.3549995024,
         0.7390998413,  -0.3794131306, -0.1886136734, 0.5627596434,  -2.275892053,  0.2171362377,
         1.85451765,    -2.139098776,  1.324923537,   -2.56405288,   1.458192982,   1.615773766},
        {2.404675635,   -0.5425011393, 0.1700841708, 0.8639412613, 1.008493748,  -0.5948599138,
         0.6572824118,  -0.7448049413, 0.2284233365, 2.40333267,   -2.430093229, 1.916207212,
         -0.9648974838, 2.783707994,   -2.684079357, -6.468806933, 4.745675003,  -2.195832409,
         2.111169431,   3.360248421,   -3.614471902, 5.158526805,  -5.067978493, 3.94332612,
         -0.3339281254, -0.6311051627, 1.086289558,  0.7606702421, -2.127366444, 0.5000443653},
        {0.445856528, -1.418802818, 1.561374884, -0.9932870742, -0.02612153902, 1.59810086, -2.681407256, 2.112390214,
         -0.3285838587, 0.5661689156, 1.568413057, -1.088881658, 0.8106397285, -2.252459846, 1.258293507,
         -0.5550786443},
        {0.7754796038, 2.580591602, -1.013051837, 1.859754339, -0.4345064366, 2.442954997, 2.293200898, -1.693272995,
         -0.2937658886, -4.881531427, -3.084587615, 1.445200518},
        {1.373409597, -5.739140042, 5.028545335, -6.652876327, 2.303356663, 0.9565035462, -4.028152543, 4.616314456,
         -2.013272649, 1.026413011, 3.148748299, -4.416454476},
        {-0.7459168521, 1.289056123, -3.126773538, -1.171565554, -1.090767896, 2.841776765, -1.335163152, -2.457717199,
         1.9363683, -2.754235145, 2.81265216, 2.758666439, -4.062773642, 4.291707646, -3.198585007, -4.974250255},
        {-1.003153801, 2.292556828, 0.8334737876, -1.205073182},
        {0, 0, 0, 0},
        {5.088257473, -4.060868067, 1.940520877, -5.366171441},
        {3.939355743, -0.7893110724, -0.8811637151, 2.517231415}};
    for (std::size_t k = 0; k < 10; ++k) {
        CAPTURE(k);
        CHECK(near(tg::tensor<double>(gradients[k]), wanted[k]));
    }
}

} // namespace stored_attention_test
