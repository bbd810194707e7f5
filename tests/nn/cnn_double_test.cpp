#include <nn/cnn_reference.hpp>
#include <nn/models.hpp>

namespace cnn_double_test {

using namespace nn_test;

namespace {

constexpr std::uint64_t seed = 5;
// A step is learning_rate * gradient; a large power of two keeps the gradient's digits in the difference of variables.
constexpr double rate = 4096;

template <class Mode>
auto make(double learning_rate) {
    return tg::compile<Mode>(small_cnn{}, cnn_spec<double>{}, tg::sigmoid_cross_entropy{},
                             tg::sgd{.learning_rate = learning_rate}, {.seed = seed});
}
const auto batch = [](std::int64_t size, std::uint64_t number) {
    return std::pair(noise<double>({size, 26, 26, 3}, number), coin_flips<double>(size, number + 1));
};

double relative_distance(const values& a, const tg::tensor<double>& b) {
    REQUIRE(static_cast<std::int64_t>(a.size()) == b.size());
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double d = a[i] - b.data()[i];
        difference += d * d;
        norm += a[i] * a[i];
    }
    return std::sqrt(difference / norm);
}

} // namespace

TEST_CASE("a double CNN trains to the same bits in both modes") {
    for (const int threads : {1, 2}) {
        CAPTURE(threads);
        const thread_limit limit(threads);
        auto g = make<tg::graph>(0.05);
        auto e = make<tg::eager>(0.05);
        train_alike(g, e, {3, 3, 3, 1, 16, 16, 7, 1, 3, 16}, batch);
    }
}

TEST_CASE("gradients of the CNN agree with a reference written by hand") {
    each_mode([](auto mode) {
        auto model = make<decltype(mode)>(rate);
        // Random values everywhere, so that no gradient is zero by symmetry.
        cnn_reference reference;
        std::map<std::string, tg::tensor<double>> before;
        for (int i = 0; i < model.variables().size(); ++i) {
            tg::variable& v = model.variables().at(i);
            tg::tensor<double> value = v.template value<double>();
            const auto extra = noise<double>(v.shape(), 40 + static_cast<std::uint64_t>(i));
            value = value + 0.1 * extra;
            v.assign(value);
            before.insert_or_assign(v.path(), value);
            reference.variables[v.path()] = value.to_vector();
        }
        reference.rate = small_cnn::rate;
        reference.kept = [](int ordinal, std::size_t i) { // the first step's masks
            return tg::random::uniform_at<double>(seed, 1, static_cast<std::uint32_t>(ordinal), i) >= small_cnn::rate;
        };
        constexpr int count = 6;
        const auto [x, y] = batch(count, 9);
        volume image(count, 26, 26, 3);
        image.v = x.to_vector();
        const double expected = reference.step(image, y.to_vector());
        const double loss = model.train_on_batch(x, y).loss;
        CHECK(std::abs(loss - expected) <= 1e-13 * expected);

        CHECK(reference.gradients.size() == 12);
        for (const auto& [path, gradient] : reference.gradients) {
            const auto shown_path = path;
            CAPTURE(shown_path);
            tg::tensor<double> found = (before.at(path) - model.variables()[path].template value<double>()) / rate;
            CHECK(relative_distance(gradient, found) < 1e-10);
        }
        for (const char* path :
             {"norm1/moving_mean", "norm1/moving_variance", "norm2/moving_mean", "norm2/moving_variance"}) {
            CAPTURE(path);
            CHECK(relative_distance(reference.variables.at(path), model.variables()[path].template value<double>()) <
                  1e-13);
        }
    });
}

} // namespace cnn_double_test
