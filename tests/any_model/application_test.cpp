#include <any_model/models.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

/// An application that uses models and knows no type of theirs: this source includes one light header.

namespace any_model_application_test {

namespace tg = tapegraph;

namespace {

template <class T>
concept known = requires {
    sizeof(T);
};
static_assert(!known<tg::detail::model_base> && !known<tg::tensor<float>> && !known<tg::variable_list>,
              "any_model.hpp has grown heavy");

template <class T>
tg::any_tensor tensor_of(const std::vector<T>& values, const tg::shape& dims) {
    tg::any_tensor t(tg::dtype_of<T>, dims);
    std::memcpy(t.write(), values.data(), values.size() * sizeof(T));
    return t;
}
/// 60 records whose class is the largest of their first three numbers.
std::pair<tg::any_tensor, tg::any_tensor> records() {
    std::vector<float> x;
    std::vector<std::int32_t> y;
    for (int i = 0; i < 60; ++i) {
        for (int k = 0; k < 6; ++k) x.push_back(static_cast<float>(std::sin(1.7 * i + 2.3 * k * k)));
        const float* const row = x.data() + 6 * i;
        y.push_back(row[0] > row[1] && row[0] > row[2] ? 0 : row[1] > row[2] ? 1 : 2);
    }
    return {tensor_of(x, {60, 6}), tensor_of(y, {60})};
}

} // namespace

TEST_CASE("any_model: a configuration selects the models, and a source without layers trains them") {
    const std::vector<std::pair<std::string, std::int64_t>> configuration{
        {"graph", 21}, {"eager", 21}, {"traced", 21}, {"traced 5", 53}, {"traced 5 4", 74}};
    const auto [x, y] = records();
    std::map<std::string, tg::any_model> models;
    for (const auto& each : configuration) models[each.first] = any_model_test::made(each.first, 3);
    for (const auto& each : configuration) {
        const std::string& line = each.first;
        CAPTURE(line);
        tg::any_model& model = models[line];
        CHECK(model.mode() == line.substr(0, line.find(' ')));
        CHECK(model.parameter_count() == each.second);
        const tg::history h = model.fit(x, y, {.epochs = 30, .batch_size = 20, .verbose = 0});
        CHECK(h.epochs.back().loss < 0.9 * h.epochs.front().loss);
        const tg::any_outputs scores = model.predict(x);
        CHECK(scores.only().shape() == tg::shape{60, 3});
        CHECK(model.evaluate(x, y).loss < h.epochs.front().loss);
    }
    // One model, three ways to run it.
    for (const char* const other : {"eager", "traced"})
        for (const std::string& name : models["graph"].variable_names()) {
            const tg::any_tensor a = models["graph"].value(name), b = models[other].value(name);
            CHECK(std::memcmp(a.read(), b.read(), a.outline_view().bytes()) == 0);
        }
    CHECK_THROWS_AS(any_model_test::made("torch", 3), tg::argument_error);
}

} // namespace any_model_application_test
