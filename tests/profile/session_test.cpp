#include <tapegraph/profile.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <algorithm>

namespace session_test {

namespace tg = tapegraph;

namespace {

struct scored {
    constexpr auto operator()(auto scope) const {
        const auto x = scope.template placeholder<float>("x", {-1, 3});
        return tg::fetches{tg::fetch("loss", tg::eval(sum(square(tg::dense(scope / "score", x, {.units = 4})))))};
    }
};

} // namespace

TEST_CASE("profile: the run of a session, its kernels under the names of their layers") {
    tg::session<scored> session;
    const auto x = tg::ones<float>(5, 3);
    const float before = session.run<"loss">({{"x", x}});
    const tg::profile_result r = tg::profile([&] { session.run<"loss">({{"x", x}}); }, {.steps = 3});
    CHECK(std::count_if(r.calls.begin(), r.calls.end(), [](const auto& c) { return c.operation == "matmul"; }) == 1);
    CHECK(std::all_of(r.calls.begin(), r.calls.end(), [](const auto& c) { return c.layer == "score"; }));
    CHECK(session.run<"loss">({{"x", x}}) == before);
}

} // namespace session_test
