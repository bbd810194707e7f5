// expect: data::loader: epoch() of a temporary
// expect: give the loader a name
// expect-elsewhere: the check stands in the function that is called, which the compiler names first
#include <tapegraph/data/loader.hpp>

int records(const tapegraph::data::dataset& set) {
    int count = 0;
    for (const auto& batch : tapegraph::data::loader(set).epoch(0)) count += static_cast<int>(batch.count());
    return count;
}
