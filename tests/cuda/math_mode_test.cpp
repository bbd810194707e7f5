#include <cuda/whole_programs.hpp>

#include <tapegraph/compile/instance.hpp>
#include <tapegraph/graph/explain.hpp>

#include <cuda/imitated_convolutions.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

/// The math_mode in which a model computes on a GPU: its own, then the thread's scope's, then the
/// process's.

namespace math_mode_test {

namespace tg = tapegraph;
using tg::math_mode;
using numbers = std::vector<double>;

namespace {

struct convolutions {
    constexpr auto operator()(auto scope, auto image) const {
        const auto h = relu(tg::conv2d(scope / "conv", image, {.filters = 8, .kernel_size = 3}));
        return tg::dense(scope / "score", flatten(h), {.units = 3});
    }
};
constexpr auto images_spec = tg::spec<float, tg::dyn, 6, 6, 8>{};

tg::tensor<float> images(int count) {
    auto x = tg::tensor<float>::uninitialized({count, 6, 6, 8});
    for (std::int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = static_cast<float>(i * 37 % 101) / 33.F - 1.5F;
    return x;
}
tg::tensor<std::int32_t> classes_of(std::int64_t count) {
    auto y = tg::tensor<std::int32_t>::uninitialized({count});
    for (std::int64_t i = 0; i < count; ++i) y.mutable_data()[i] = static_cast<std::int32_t>(i % 4 == 3 ? 1 : i % 4);
    return y;
}
const tg::tensor<std::int32_t> classes = classes_of(4);

template <class Mode>
auto made(std::optional<math_mode> mode) {
    return tg::compile<Mode>(convolutions{}, images_spec, tg::sparse_softmax_cross_entropy{},
                             tg::sgd{.learning_rate = 0.1},
                             {.seed = 4, .device = tg::device::cuda(0), .math_mode = mode});
}
/// Losses of steps, the last of them replayed, of an evaluation, and a prediction.
template <class Model>
numbers run(Model& model, int count = 4) {
    const auto x = images(count);
    const auto y = classes_of(count);
    numbers all;
    for (int i = 0; i < 4; ++i) all.push_back(model.train_on_batch(x, y).loss);
    all.push_back(model.evaluate(x, y).loss);
    for (const float y : model.predict(x).to_vector()) all.push_back(static_cast<double>(y));
    return all;
}
template <class Mode>
numbers trained(std::optional<math_mode> mode) {
    auto model = made<Mode>(mode);
    return run(model);
}

struct process_mode {
    explicit process_mode(math_mode mode) { tg::set_math_mode(mode); }
    process_mode(const process_mode&) = delete;
    process_mode& operator=(const process_mode&) = delete;
    ~process_mode() { tg::set_math_mode(math_mode::fp32); }
};

} // namespace

TEST_CASE("a model's math_mode goes before the process's, in both modes") {
    const numbers exact = trained<tg::graph>({}), rounded = trained<tg::graph>(math_mode::tf32);
    CHECK(exact != rounded);
    CHECK(rounded.front() == doctest::Approx(exact.front()).epsilon(0.01)); // factors of 10 bits
    CHECK(trained<tg::eager>(math_mode::tf32) == rounded);
    CHECK(trained<tg::eager>({}) == exact);
    const process_mode set(math_mode::tf32);
    CHECK(trained<tg::graph>({}) == rounded);
    CHECK(trained<tg::graph>(math_mode::fp32) == exact);
    CHECK(trained<tg::eager>(math_mode::fp32) == exact);
}

TEST_CASE("a program made under a math_mode_scope keeps it, and a scope ends where it ends") {
    const auto x = images(4);
    const tg::device_scope on(tg::device::cuda(0));
    const auto f = [](const auto& image, const auto& filter) { return conv2d(image, filter); };
    const tg::tensor<float> w = tg::reshape(images(2), {3, 3, 8, 8});
    const auto exact = f(x, w).to_vector();
    std::vector<float> rounded;
    {
        const tg::math_mode_scope in(math_mode::tf32);
        CHECK(tg::current_math_mode() == math_mode::tf32);
        rounded = f(x, w).to_vector();
        {
            const tg::math_mode_scope same({});
            CHECK(tg::current_math_mode() == math_mode::tf32);
            const tg::math_mode_scope inner(math_mode::fp32);
            CHECK(f(x, w).to_vector() == exact);
        }
        CHECK(f(x, w).to_vector() == rounded);
    }
    CHECK(rounded != exact);
    CHECK(tg::current_math_mode() == math_mode::fp32);
}

TEST_CASE("a captured step follows the process's math_mode") {
    const auto x = images(4);
    auto model = tg::compile<tg::graph>(convolutions{}, images_spec, tg::sparse_softmax_cross_entropy{},
                                        tg::sgd{.learning_rate = 0}, {.seed = 4, .device = tg::device::cuda(0)});
    numbers exact, rounded, again;
    for (int i = 0; i < 3; ++i) exact.push_back(model.train_on_batch(x, classes).loss);
    {
        const process_mode set(math_mode::tf32);
        for (int i = 0; i < 3; ++i) rounded.push_back(model.train_on_batch(x, classes).loss);
    }
    for (int i = 0; i < 3; ++i) again.push_back(model.train_on_batch(x, classes).loss);
    CHECK(exact == numbers(3, exact[0]));
    CHECK(rounded == numbers(3, rounded[0]));
    CHECK(rounded[0] != exact[0]);
    CHECK(again == exact);
}

TEST_CASE("explain names the mode of convolutions and products") {
    const auto explained = [](std::optional<math_mode> mode) {
        auto model = made<tg::graph>(mode);
        model.train_on_batch(images(4), classes);
        return tg::explain(model, {.details = true});
    };
    const std::string exact = explained({}), rounded = explained(math_mode::tf32), split = explained(math_mode::tf32x3);
    const auto count = [](const std::string& text, const std::string& part) {
        int found = 0;
        for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
        return found;
    };
    CHECK(count(exact, " by tf32") == 0);
    CHECK(count(rounded, " by tf32") >= 5); // outputs of both layers, gradients of both weights and of the features
    CHECK(count(split, " by tf32x3") >= 2); // only convolutions: the library multiplies floats
    CHECK(count(split, " by tf32x3") < count(rounded, " by tf32"));
}

TEST_CASE("plans that are remembered: explain names them, and both modes have the same bits") {
    const tg::testing::imitated_convolutions here;
    auto& memory = tg::cuda::plan_memory::instance();
    memory.keep(tg::cuda::context::of(0).properties().name,
                "convolution forward f32 tf32 images 5x6x6x8 filters 3x3x8 outputs 4x4 strides 1x1 pads 0x0 dilations "
                "1x1 groups 1",
                {"warpgroups", 1});
    auto graph = made<tg::graph>(math_mode::tf32);
    auto eager = made<tg::eager>(math_mode::tf32);
    auto in_float = made<tg::graph>({});
    const numbers rounded = run(graph, 5), exact = run(in_float, 5);
    CHECK(run(eager, 5) == rounded);
    CHECK(rounded != exact);
    CHECK(rounded.front() == doctest::Approx(exact.front()).epsilon(0.01)); // factors of 10 bits
    const auto explained = [](const auto& model, int batch) {
        return tg::explain(model, {.batch_size = batch, .details = true});
    };
    const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
    CHECK(has(explained(graph, 5), " by tf32, tensor_cores ")); // gradients
    CHECK(has(explained(in_float, 5), " by multiply_adds "));
    CHECK_FALSE(has(explained(graph, 6), "warpgroups"));
#ifdef TG_SIMT
    CHECK(has(explained(graph, 5), " by tf32, warpgroups"));
    CHECK_FALSE(has(explained(in_float, 5), "warpgroups"));
    CHECK(tg::testing::imitated_convolutions::runs > 0);
#endif
    memory.forget(); // the rest follows from the shape
    CHECK(has(explained(graph, 6), " by tf32"));
    CHECK_FALSE(has(explained(graph, 6), " by tf32, "));
}

TEST_CASE("an instance computes in its mode") {
    auto net = tg::instance(convolutions{}, images_spec,
                            {.seed = 4, .device = tg::device::cuda(0), .math_mode = math_mode::tf32});
    auto exact = tg::instance(convolutions{}, images_spec, {.seed = 4, .device = tg::device::cuda(0)});
    const auto x = images(4);
    const auto rounded = net(x).to_vector();
    CHECK(rounded != exact(x).to_vector());
    const tg::math_mode_scope in(math_mode::tf32);
    CHECK(rounded == exact(x).to_vector());
}

TEST_CASE("a derivative of a compiled function is computed in the mode of its call") {
    const tg::device_scope on(tg::device::cuda(0));
    const auto slope = [](std::optional<math_mode> mode) {
        auto f = tg::function<tg::graph>([](auto image, auto filter) { return conv2d(image, filter); }, images_spec,
                                         tg::spec<float, 3, 3, 8, 8>{});
        tg::tensor<float> x = images(4);
        const tg::tensor<float> w = tg::reshape(images(2), {3, 3, 8, 8});
        tg::gradient_tape tape;
        tape.watch(x);
        tg::tensor<float> y;
        {
            const tg::math_mode_scope in(mode);
            y = f(x, w);
        }
        return tape.gradient(sum(y * y), x).to_vector();
    };
    const auto exact = slope({}), rounded = slope(math_mode::tf32);
    CHECK(exact != rounded);
    const process_mode set(math_mode::tf32);
    CHECK(slope({}) == rounded);
    CHECK(slope(math_mode::fp32) == exact);
}

} // namespace math_mode_test
