// Operations that ONNX has not, written as what they are made of, and read again.

#include <tapegraph/io/load_onnx.hpp>
#include <tapegraph/io/onnx.hpp>
#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/traced.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace onnx_operations_test {

namespace tg = tapegraph;

namespace {

// The greatest difference between a model's predictions and those of its file, over batches and lengths.
template <class Model>
double worst_difference(const Model& net) {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "m.onnx").string();
    auto model = tg::compile<tg::traced>(net, tg::spec<float, tg::dyn, tg::dim<"time">, 8>{}, {.seed = 2});
    tg::io::export_onnx(model, path);
    const auto loaded = tg::io::load_onnx(path);
    double worst = 0, largest = 0;
    for (const tg::shape& dims : {tg::shape{1, 1, 8}, tg::shape{3, 5, 8}, tg::shape{2, 7, 8}}) {
        const auto x = tg::random::normal<float>(dims, {.seed = 7});
        const tg::tensor<float> ours = model.predict(x), theirs(loaded.predict({x})[0]);
        REQUIRE(ours.shape() == theirs.shape());
        for (std::int64_t i = 0; i < ours.size(); ++i) {
            const double difference = std::fabs(static_cast<double>(ours.data()[i]) - theirs.data()[i]);
            worst = difference <= worst ? worst : difference; // NaN is no small one
            largest = std::max(largest, std::fabs(static_cast<double>(ours.data()[i])));
        }
    }
    CHECK(largest > 0.01);
    return worst;
}
constexpr double rounding = 2e-6; // of sums of a few numbers near one, in another order

// Four heads of queries, two of keys and values.
template <class Attend>
auto attended(const Attend& attend) {
    return [attend](auto scope, auto x) {
        const auto heads = [&](const char* name, std::int64_t count) {
            const auto h = tg::dense(scope / name, x, {.units = 3 * count});
            const tg::shape from = tg::shape_of(h);
            tg::shape to(2, from.data(), from.table());
            to.push_back(count);
            to.push_back(3);
            return tg::eval(tg::reshape(h, to));
        };
        return attend(heads("query", 4), heads("key", 2), heads("value", 2), x);
    };
}

} // namespace

TEST_CASE("attention of grouped heads, with each kind of mask") {
    CHECK(worst_difference(attended([](auto q, auto k, auto v, auto) { return tg::attention(q, k, v); })) < rounding);
    CHECK(worst_difference(attended([](auto q, auto k, auto v, auto) {
              return tg::attention(q, k, v, {.scale = 0.3, .causal = true});
          })) < rounding);
    // The last two keys but one are hidden from all, and the first query sees none.
    CHECK(worst_difference(attended([](auto q, auto k, auto v, auto) {
              return tg::attention(q, k, v, {.causal = true, .causal_offset = -1, .causal_at_end = true});
          })) < rounding);
    CHECK(worst_difference(attended([](auto q, auto k, auto v, auto x) {
              const auto seen = tg::eval(tg::greater(mean(x, {2}), -0.3)); // [batch, time], of some all are false
              return tg::attention(q, k, v, tg::expand_dims(tg::expand_dims(seen, 1), 1));
          })) < rounding);
    CHECK(worst_difference(attended([](auto q, auto k, auto v, auto x) {
              const auto bias = tg::eval(tg::expand_dims(tg::expand_dims(mean(x, {2}), 1), 1)); // added to the scores
              return tg::attention(q, k, v, bias, {.causal = true});
          })) < rounding);
}

TEST_CASE("the layer of several heads") {
    CHECK(worst_difference([](auto scope, auto x) {
              return tg::multi_head_attention(scope / "look", x, x,
                                              {.num_heads = 2, .key_dim = 3, .use_causal_mask = true});
          }) < rounding);
}

TEST_CASE("the cross entropy of class numbers, for each record") {
    CHECK(worst_difference([](auto scope, auto x) {
              const auto logits = tg::eval(tg::dense(scope / "logits", x, {.units = 5}));
              return tg::sparse_softmax_cross_entropy_with_logits(logits, tg::argmax(logits * -1, 2));
          }) < rounding);
}

} // namespace onnx_operations_test
