// Graphs that are saved operation by operation: loaded, they are the same, to the last bit.

#include <tapegraph/io/load_onnx.hpp>
#include <tapegraph/io/save_program.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/scan.hpp>
#include <tapegraph/traced.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace save_program_test {

namespace tg = tapegraph;

struct fifth_op : tg::map_op<1> { // an operation of a user's own
    static constexpr std::string_view name = "fifth";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return x / V(5);
    }
    template <tg::handle H>
    static constexpr auto vjp(const H& dy, const H&, const H&) {
        return dy / 5.0;
    }
};

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::conv2d(scope / "conv", x, {.filters = 4, .kernel_size = 3, .padding = tg::padding::same()});
        h = relu(tg::batch_normalization(scope / "norm", h));
        h = tg::max_pooling2d(h, {.pool_size = 2});
        return tg::dense(scope / "score", tg::flatten(h), {.units = 3});
    }
};
struct series {
    constexpr auto operator()(auto scope, auto x) const {
        const auto steps = tg::lstm(scope / "lstm", x, {.units = 5, .return_sequences = true});
        const auto last = tg::gru(scope / "gru", steps, {.units = 4});
        return tg::dense(scope / "out", last, {.units = 2});
    }
};
// Operations that ONNX lacks, or that share a name, and extents that depend on those of the input.
struct odds {
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = scope.template variable<float>("w", {4}, {.initializer = tg::init::normal{}});
        const auto scale = scope.template variable<float>("scale", {}, {.initializer = tg::init::constant{1.5}});
        auto y = tg::eval(tg::pow<3>(x) * w + tg::pow<2>(x) - tg::pow<4>(x) * 0.1);
        y = tg::eval(tg::where(y > 0.25, atan2(y, x), y / 3.0) * scale);
        y = tg::cumulative_product(y, 0, {.exclusive = true});
        const auto order = tg::argsort(y, -1);
        const auto sorted = tg::take_along(y, order, -1);
        const auto twice = tg::concat(sorted, tg::flip(y, {0}), 0);
        const auto hot = tg::one_hot<float>(tg::argmax(twice, -1), 4);
        return tg::eval(twice + hot - tg::mean(twice, {0}) + tg::cast<float>(tg::cast<std::int32_t>(twice * 8.0)));
    }
};

template <class T>
bool same(const tg::tensor<T>& a, const tg::tensor<T>& b) {
    REQUIRE(a.shape() == b.shape());
    return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(T)) == 0;
}
tg::tensor<float> numbers(const tg::shape& dims, std::uint64_t seed) {
    return tg::random::normal<float>(dims, {.seed = seed});
}
std::string refusal(const auto& f) {
    try {
        f();
    } catch (const tg::error& e) {
        return e.what();
    }
    return "none";
}

} // namespace

TEST_CASE("a loaded program predicts the same bits, for any batch, whatever mode saved it") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "network.onnx").string();
    const auto check = [&](auto& model) {
        tg::io::save_program(model, path);
        const auto net = tg::io::load_onnx(path);
        CHECK(net.inputs()[0].extents == std::vector<std::int64_t>{-1, 6, 4, 2});
        for (const std::int64_t batch : {1, 3, 8}) {
            const auto x = numbers({batch, 6, 4, 2}, 7);
            CHECK(same(model.predict(x), tg::tensor<float>(net.predict({x})[0])));
        }
    };
    using images = tg::spec<float, tg::dyn, 6, 4, 2>;
    auto traced = tg::compile<tg::traced>(network{}, images{}, tg::sparse_softmax_cross_entropy{}, tg::adam{});
    check(traced);
    auto graph = tg::compile<tg::graph>(network{}, images{});
    check(graph);
    auto eager = tg::compile<tg::eager>(network{}, images{});
    check(eager);
}

TEST_CASE("operations that share a name, and extents that depend on others") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "odds.onnx").string();
    auto model = tg::compile<tg::traced>(odds{}, tg::spec<float, tg::dyn, 4>{});
    tg::io::save_program(model, path);
    const auto net = tg::io::load_onnx(path);
    for (const std::int64_t batch : {1, 5}) {
        const auto x = numbers({batch, 4}, 3);
        const auto y = model.predict(x);
        CHECK(y.shape() == tg::shape{2 * batch, 4});
        CHECK(same(y, tg::tensor<float>(net.predict({x})[0])));
    }
    CHECK(net.variables()["scale"].trainable()); // a number, which a file of another origin would fix
}

TEST_CASE("random numbers are drawn from the same places") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "noise.onnx").string();
    const auto noisy = [](auto, auto x) {
        return x + tg::random::uniform_like(x, {}) - tg::random::normal_like(x, {});
    };
    auto model = tg::compile<tg::traced>(noisy, tg::spec<float, tg::dyn>{}, {.seed = 5});
    tg::io::save_program(model, path);
    auto again = tg::compile<tg::traced>(tg::io::load_onnx(path), tg::spec<float, tg::dyn>{}, {.seed = 5});
    const auto x = numbers({7}, 1);
    CHECK(same(model.predict(x), again.predict(x)));
}

TEST_CASE("recurrent layers, of any number of steps, and double") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "series.onnx").string();
    auto model = tg::compile<tg::traced>(series{}, tg::spec<double, tg::dyn, tg::dim<"time">, 3>{});
    tg::io::save_program(model, path);
    const auto net = tg::io::load_onnx(path);
    for (const std::int64_t steps : {1, 7}) {
        const auto x = tg::random::normal<double>({2, steps, 3}, {.seed = 3});
        CHECK(same(model.predict(x), tg::tensor<double>(net.predict({x})[0])));
    }
}

TEST_CASE("training goes on where it was, with the same bits") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "network.onnx").string();
    auto model =
        tg::compile<tg::traced>(series{}, tg::spec<float, tg::dyn, 4, 3>{}, tg::mean_squared_error{}, tg::sgd{});
    tg::io::save_program(model, path);
    const auto net = tg::io::load_onnx(path);
    auto again = tg::compile<tg::traced>(net, tg::spec<float, tg::dyn, 4, 3>{}, tg::mean_squared_error{}, tg::sgd{});
    const auto x = numbers({6, 4, 3}, 1), y = numbers({6, 2}, 2);
    for (int step = 0; step < 3; ++step) {
        const auto a = model.train_on_batch(x, y), b = again.train_on_batch(x, y);
        CHECK(a.loss == b.loss);
    }
    CHECK(same(model.predict(x), again.predict(x)));
    // And what is saved of the loaded model is the same program.
    const auto once_more = (folder.path() / "again.onnx").string();
    tg::io::save_program(again, once_more);
    CHECK(same(again.predict(x), tg::tensor<float>(tg::io::load_onnx(once_more).predict({x})[0])));
}

TEST_CASE("operations of one's own are found by their names; scans are refused") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "own.onnx").string();
    auto model =
        tg::compile<tg::traced>([](auto, auto x) { return tg::apply<fifth_op>(x + 1.0); }, tg::spec<float, tg::dyn>{});
    CHECK(refusal([&] { tg::io::save_program(model, path); }).find("'fifth' (") != std::string::npos);
    tg::register_kernels<fifth_op, float>();
    tg::io::save_program(model, path);
    const auto x = numbers({7}, 1);
    CHECK(same(model.predict(x), tg::tensor<float>(tg::io::load_onnx(path).predict({x})[0])));

    auto scans = tg::compile<tg::traced>(
        [](auto, auto v) {
            const auto add = [](const auto& carry, const auto& each) {
                return std::tuple{tg::eval(carry + each), tg::eval(carry * each)};
            };
            const auto [last, all] = tg::scan(add, take(v, 0, 1), v);
            return all;
        },
        tg::spec<float, 3, 2>{});
    const auto nowhere = folder.path() / "scans.onnx";
    CHECK(refusal([&] { tg::io::save_program(scans, nowhere.string()); }).find("'scan'") != std::string::npos);
    CHECK(!std::filesystem::exists(nowhere));
}

// Files of version 1 have these numbers; another order needs a new version.
template <class... Ops>
void check_variants(const char* name) {
    CAPTURE(name);
    int variant = 0;
    const auto check = [&](const tg::ir::operation& op) {
        CHECK(tg::ir::operation_named(name, variant).op == &op);
        CHECK(tg::ir::name_of_operation(&op).variant == variant++);
    };
    (check(tg::ir::descriptor_of<Ops>), ...);
    CHECK(tg::ir::operation_named(name, variant).op == nullptr);
}

TEST_CASE("the numbers of operations that share a name are part of the format") {
    using namespace tapegraph;
    check_variants<integer_power_op<2>, integer_power_op<3>, integer_power_op<4>>("integer_power");
    check_variants<cast_op<float>, cast_op<double>, cast_op<half>, cast_op<bfloat16>, cast_op<std::int32_t>,
                   cast_op<std::int64_t>, cast_op<std::uint8_t>, cast_op<bool>>("cast");
    check_variants<arange_op<float>, arange_op<double>, arange_op<std::int32_t>, arange_op<std::int64_t>>("arange");
    check_variants<one_hot_op<float>, one_hot_op<double>>("one_hot");
    check_variants<random_integer_op<std::int32_t>, random_integer_op<std::int64_t>>("random_integers");
    check_variants<random_op<float>, random_op<double>, random_op<half>, random_op<bfloat16>>("random");
    check_variants<random_address_op<float>, random_address_op<double>>("random_address");
    check_variants<matmul_op>("matmul");
    CHECK(ir::operation_named("no such operation", 0).op == nullptr);
}

TEST_CASE("a program of a later version, and files that lie, are refused") {
    const support::temporary_folder folder;
    const auto path = (folder.path() / "network.onnx").string();
    auto model = tg::compile<tg::traced>(odds{}, tg::spec<float, tg::dyn, 4>{});
    tg::io::save_program(model, path);
    std::ifstream in(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    const auto with = [&](std::string from, const std::string& to) {
        std::string other = bytes;
        REQUIRE(from.size() == to.size());
        const auto at = other.rfind(from);
        REQUIRE(at != other.npos);
        other.replace(at, from.size(), to);
        std::ofstream(path, std::ios::binary) << other;
        return refusal([&] { tg::io::load_onnx(path); });
    };
    CHECK(with(std::string("\x0a\x09tapegraph\x10\x01"), std::string("\x0a\x09tapegraph\x10\x02"))
              .find("reads up to version 1") != std::string::npos);
    CHECK(with("atan2\x3a", "atan3\x3a").find("atan") != std::string::npos);
    CHECK(with("@0.0 ", "@0.9 ").find("of an input that there is not") != std::string::npos);
    CHECK(with("@0.0 ", "@0.+ ").find("extent '") != std::string::npos);
}

} // namespace save_program_test
