#include "trained_model.hpp"

#include "../models/bag_of_words.hpp"

/// Texts of 64 words of 50,000, classified by the mean of their rows, Adam. With "sparse_training" the
/// table's gradient and update cover only the rows of the batch.
int main(int argc, char** argv) {
    using namespace compare;
    using dense = models::bag_of_words<false>;
    using sparse = models::bag_of_words<true>;
    return serve(argc, argv, [](const row& r, bool, const std::string& weights) {
        using spec = tg::spec<std::int32_t, tg::dyn, dense::time>;
        const auto x = characters(r.size, dense::time, dense::vocabulary);
        const auto y = in_turns(r.size, dense::classes);
        const tg::sparse_softmax_cross_entropy loss{};
        if (r.kind == "sparse_training") return training_of<sparse, spec>(r, weights, x, y, loss, tg::adam{});
        return training_of<dense, spec>(r, weights, x, y, loss, tg::adam{});
    });
}
