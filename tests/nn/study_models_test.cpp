#include <models/conv1d_large.hpp>
#include <models/conv1d_medium.hpp>
#include <models/conv1d_small.hpp>
#include <models/recurrent_medium.hpp>
#include <models/recurrent_small.hpp>
#include <models/text_classifier.hpp>

#include <nn/models.hpp>

namespace study_models_test {

/// The layer tables of the studies' models. Keras counts, biases included:
///   embedding  rows * width               convolution  kernel * in * filters + filters
///   dense      in * units + units         LSTM         4 * (in + units + 1) * units

using namespace nn_test;

namespace {

/// Parameters of the rows of a kind, in order.
std::vector<std::int64_t> parameters(const tg::model_summary& s, const std::string& type) {
    std::vector<std::int64_t> found;
    for (const auto& row : s.rows)
        if (row.type == type) found.push_back(row.parameters);
    return found;
}
const tg::model_summary::row& row_of(const tg::model_summary& s, const std::string& type) {
    for (const auto& row : s.rows)
        if (row.type == type) return row;
    FAIL("no such row: " << type);
    return s.rows.front();
}
using counts = std::vector<std::int64_t>;

} // namespace

TEST_CASE("parameters of the text classifier") {
    const auto s = tg::summarize(models::text_classifier{}, tg::spec<float, tg::dyn, tg::dyn>{});
    CHECK(parameters(s, "embedding") == counts{5'208'448}); // 40691 * 128
    CHECK(parameters(s, "lstm") == counts{131'584});        // 4 * (128 + 128 + 1) * 128
    CHECK(parameters(s, "dense") == counts{12'900, 303});   // 128 * 100 + 100, 100 * 3 + 3
    CHECK(s.parameters == 5'353'235);
    CHECK(s.trainable == 5'353'235);
    CHECK(s.rows.back().output == "[?, 3]");
}

TEST_CASE("parameters of the small convolution") {
    const auto s = tg::summarize(models::conv1d_small{}, tg::spec<float, tg::dyn, 140, 30>{});
    CHECK(parameters(s, "conv1d") == counts{153'728});  // 40 * 30 * 128 + 128
    CHECK(parameters(s, "dense") == counts{8'256, 65}); // 128 * 64 + 64, 64 + 1
    CHECK(s.parameters == 162'049);
    CHECK(row_of(s, "conv1d").output == "[?, 35, 128]");
    CHECK(row_of(s, "global_average_pooling1d").output == "[?, 128]");
}

TEST_CASE("parameters of the medium convolutions") {
    const auto s = tg::summarize(models::conv1d_medium{}, tg::spec<float, tg::dyn, 1400, 30>{});
    // 20 * in * filters + filters with in and filters 30 64, 64 128, 128 256, 256 256, 256 128, 128 64
    CHECK(parameters(s, "conv1d") == counts{38'464, 163'968, 655'616, 1'310'976, 655'488, 163'904});
    CHECK(parameters(s, "dense") == counts{16'640, 32'896, 8'256, 65}); // 64 to 256 to 128 to 64 to 1
    CHECK(s.parameters == 3'046'273);                                   // 2'988'416 + 57'857
}

TEST_CASE("parameters of the large convolutions") {
    const auto s = tg::summarize(models::conv1d_large{}, tg::spec<float, tg::dyn, 14000, 30>{});
    counts each{768'064, 1'638'528, 393'472}; // 400 * 30 * 64 + 64, 200 * 64 * 128 + 128, 12 * 128 * 256 + 256
    for (int i = 0; i < 39; ++i) each.push_back(786'688); // 12 * 256 * 256 + 256
    // 20 * 256 * 512 + 512, 10 * 512 * 1028 + 1028, 1028 * 256 + 256
    each.insert(each.end(), {2'621'952, 5'264'388, 263'424});
    CHECK(parameters(s, "conv1d") == each);
    CHECK(parameters(s, "dense") == counts{65'792, 32'896, 8'256, 65}); // 256 to 256 to 128 to 64 to 1
    CHECK(s.parameters == 41'737'669);                                  // 41'630'660 + 107'009
    // (14000 - 400) / 4 + 1 = 3401, less 199 is 3202, which stays; (3202 - 20) / 2 + 1 = 1592, (1592 - 10) / 2 + 1 = 792
    CHECK(row_of(s, "conv1d").output == "[?, 3401, 64]");
    for (std::size_t i = 0; i < s.rows.size(); ++i)
        if (s.rows[i].path == "exit/2") CHECK(s.rows[i].output == "[?, 792, 256]");
}

TEST_CASE("parameters of the small network of the recurrent pair") {
    const auto s = tg::summarize(models::recurrent_small{}, tg::spec<float, tg::dyn, 400, 16>{});
    CHECK(parameters(s, "conv1d") == counts{819'328});    // 400 * 16 * 128 + 128
    CHECK(row_of(s, "flatten").output == "[?, 12800]");   // 100 * 128
    CHECK(parameters(s, "dense") == counts{819'264, 65}); // 12800 * 64 + 64, 64 + 1
    CHECK(s.parameters == 1'638'657);
}

TEST_CASE("parameters of the medium network of the recurrent pair") {
    const auto s = tg::summarize(models::recurrent_medium{}, tg::spec<float, tg::dyn, 400, 16>{});
    CHECK(parameters(s, "bidirectional") == counts{2'166'784});            // 2 * 4 * (16 + 512 + 1) * 512
    CHECK(parameters(s, "lstm") == counts{3'147'776});                     // 4 * (1024 + 512 + 1) * 512
    CHECK(parameters(s, "conv1d") == counts{26'214'528});                  // 400 * 512 * 128 + 128
    CHECK(parameters(s, "dense") == counts{3'277'056, 32'896, 8'256, 65}); // 12800 to 256 to 128 to 64 to 1
    CHECK(s.parameters == 34'847'361);
}

TEST_CASE("summarize is the layer table of the compiled model") {
    const tg::spec<float, tg::dyn, 140, 30> series{};
    CHECK(tg::summarize(models::conv1d_small{}, series).text() ==
          tg::compile<tg::eager>(models::conv1d_small{}, series).summary());
}

} // namespace study_models_test
