#include "models/cats_and_dogs.hpp"
#include "models/conv1d_large.hpp"
#include "models/conv1d_medium.hpp"
#include "models/conv1d_small.hpp"
#include "models/recurrent_medium.hpp"
#include "models/recurrent_small.hpp"
#include "models/text_classifier.hpp"

#include <cstdio>

namespace tg = tapegraph;

// Prints the layer table of every model in models/, with the input that it has in its study. The
// tables are made at compile time: no variable is initialised.
template <class Model, class Spec>
void print(const char* name, const Model& model, Spec spec) {
    std::printf("%s, input %s\n\n%s\n", name, Spec::text().c_str(), tg::summarize(model, spec).text().c_str());
}

int main() {
    print("cats_and_dogs", models::cats_and_dogs{}, tg::spec<float, tg::dyn, 50, 50, 3>{});
    print("text_classifier", models::text_classifier{}, tg::spec<float, tg::dyn, tg::dyn>{});
    print("conv1d_small", models::conv1d_small{}, tg::spec<float, tg::dyn, 140, 30>{});
    print("conv1d_medium", models::conv1d_medium{}, tg::spec<float, tg::dyn, 1400, 30>{});
    print("conv1d_large", models::conv1d_large{}, tg::spec<float, tg::dyn, 14000, 30>{});
    print("recurrent_small", models::recurrent_small{}, tg::spec<float, tg::dyn, 400, 16>{});
    print("recurrent_medium", models::recurrent_medium{}, tg::spec<float, tg::dyn, 400, 16>{});
}
