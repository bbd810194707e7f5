#include "trained_model.hpp"

#include "../models/rnn.hpp"

/// The text classifier: 40 words, embedding, LSTM, three classes, Adam. With "sparse_training" the
/// table's gradient and update cover only the rows of the batch.
int main(int argc, char** argv) {
    using namespace compare;
    using benchmarks::rnn, benchmarks::words;
    return serve(argc, argv, [](const row& r, bool, const std::string& weights) {
        using dense = rnn<words::dense_gradient>;
        using sparse = rnn<words::sparse_gradient>;
        const auto x = dense::input(r.size);
        const auto y = in_turns(r.size, 3);
        const tg::sparse_softmax_cross_entropy loss{};
        if (r.kind == "sparse_training") return training_of<sparse, sparse::spec>(r, weights, x, y, loss, tg::adam{});
        return training_of<dense, dense::spec>(r, weights, x, y, loss, tg::adam{});
    });
}
