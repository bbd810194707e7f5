#pragma once

#include <tapegraph/tapegraph.hpp>

#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>

/// A text classifier: embedding 40,691 x 128, LSTM 128, dense 100 with relu, dense 3. 5,353,235 parameters.

namespace benchmarks {

enum class words { dense_gradient, sparse_gradient, none };

/// `none` omits the embedding, for words that are already embedded.
template <words Words>
struct rnn {
    static constexpr bool embedded = Words != words::none;
    static constexpr std::int64_t time = 40, vocabulary = 40691, units = 128;
    using spec = std::conditional_t<embedded, tapegraph::spec<std::int32_t, tapegraph::dyn, time>,
                                    tapegraph::spec<float, tapegraph::dyn, time, units>>;

    constexpr auto operator()(auto scope, auto x) const {
        const auto steps = [&] {
            if constexpr (embedded)
                return tapegraph::embedding(
                    scope / "embedding", x,
                    {.input_dim = vocabulary, .output_dim = units, .sparse = Words == words::sparse_gradient});
            else
                return x;
        }();
        const auto h = tapegraph::lstm(scope / "lstm", steps, {.units = units});
        return tapegraph::dense(scope / "score", relu(tapegraph::dense(scope / "hidden", h, {.units = 100})),
                                {.units = 3});
    }

    static auto input(std::int64_t batch) {
        using element = typename spec::element_type;
        tapegraph::shape dims{batch, time};
        if (!embedded) dims.push_back(units);
        auto x = tapegraph::tensor<element>::uninitialized(dims);
        element* const to = x.mutable_data();
        for (std::int64_t i = 0; i < x.size(); ++i)
            to[i] = embedded ? static_cast<element>(i * 7919 % vocabulary)
                             : static_cast<element>(static_cast<float>(i * 7919 % 1013) / 506.5f - 1);
        return x;
    }
    static auto labels(std::int64_t batch) {
        auto y = tapegraph::tensor<std::int32_t>::uninitialized({batch});
        for (std::int64_t i = 0; i < batch; ++i) y.mutable_data()[i] = static_cast<std::int32_t>(i % 3);
        return y;
    }
    static auto compiled() {
        return tapegraph::compile<tapegraph::graph>(rnn{}, spec{}, tapegraph::sparse_softmax_cross_entropy{},
                                                    tapegraph::adam{}, {.seed = 1});
    }
};

} // namespace benchmarks
