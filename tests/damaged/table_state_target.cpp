#include <damaged/target.hpp>

#include <tapegraph/data/tables/discretization.hpp>
#include <tapegraph/data/tables/lookup.hpp>
#include <tapegraph/data/tables/normalization.hpp>

#include <vector>

std::vector<std::string> sound_files() {
    using namespace tapegraph;
    return {
        data::normalization({1, 2.5}, {0.1, 4}).to_json(), data::min_max_scaling({1, -3}, {2, 5}).to_json(),
        data::discretization({0, 0.7, 2}, data::output_mode::count).to_json(),
        data::string_lookup({.mask_token = "", .mode = data::output_mode::tf_idf}, {"a", "b"}, {0.5, 0.25}).to_json(),
        data::integer_lookup({.max_tokens = 5, .pad_to_max_tokens = true}, {12, -7}).to_json()};
}

namespace {

template <class Step>
bool read(const std::string& bytes) {
    try {
        static_cast<void>(Step::from_json(bytes).to_json());
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

} // namespace

bool read_damaged(const std::string& bytes) {
    using namespace tapegraph;
    const bool known[] = {read<data::normalization>(bytes), read<data::min_max_scaling>(bytes),
                          read<data::discretization>(bytes), read<data::string_lookup>(bytes),
                          read<data::integer_lookup>(bytes)};
    for (const bool each : known)
        if (each) return true;
    return false;
}

const std::size_t memory_factor = 64; // numbers and words
