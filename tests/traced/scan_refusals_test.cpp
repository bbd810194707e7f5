#include <support/messages.hpp>

#include <tapegraph/nn/scan.hpp>
#include <tapegraph/traced.hpp>

#include <doctest/doctest.h>

#include <string>

namespace traced_scan_refusals_test {

/// What belongs to a model is refused in a cell of a scan, which is traced without one, at its line.

namespace {

namespace tg = tapegraph;

/// The message for a session whose scan has this cell.
std::string refused(const auto& make_cell) {
    const auto model = [&](auto scope) {
        const auto xs = scope.template placeholder<float>("xs", {2, -1, 3});
        const auto w = scope.template variable<float>("w", {2, 3});
        const auto [last, all] = tg::scan(make_cell(scope, w), w, xs);
        return tg::fetches{tg::fetch("y", tg::eval(sum(last) + sum(all)))};
    };
    return support::message_of<tg::shape_error>([&] {
        auto session = tg::make_session<tg::traced>(model);
        session.run({"y"}, {{"xs", tg::ones<float>({2, 4, 3})}});
    });
}
void check(const std::string& text, const std::string& begin) {
    CHECK(text.substr(0, begin.size()) == begin);
    CHECK(text.find("scan_refusals_test.cpp:") != std::string::npos);
}

// A cell of the next state and, of it, the output.
constexpr auto step = [](auto next) { return std::pair{next, next}; };

} // namespace

TEST_CASE("run-time scans: a cell without captures changes nothing of a model") {
    check(refused([](auto, auto) {
              return [](auto state, auto x) {
                  static_cast<void>(tg::minimize(mean(state * x), tg::sgd{}));
                  return step(tg::eval(state + x));
              };
          }),
          "minimize: not in a cell of a scan");
    check(refused([](auto, auto) {
              return [](auto state, auto x) {
                  static_cast<void>(tg::compute_gradients(mean(state * x)));
                  return step(tg::eval(state + x));
              };
          }),
          "compute_gradients: not in a cell of a scan");
    check(refused([](auto, auto) {
              return [](auto state, auto x) {
                  tg::list<tg::gradient_pair> pairs;
                  pairs.push_back({x, state});
                  static_cast<void>(tg::apply_gradients(pairs, tg::sgd{}));
                  return step(tg::eval(state + x));
              };
          }),
          "apply_gradients: not in a cell of a scan");
    check(refused([](auto, auto) {
              return [](auto state, auto x) {
                  static_cast<void>(tg::assign(state, x));
                  static_cast<void>(tg::assign_add(state, 1));
                  static_cast<void>(tg::assign_sub(state, x));
                  return step(tg::eval(state + x));
              };
          }),
          "assign: not in a cell of a scan");
}

TEST_CASE("run-time scans: a cell with captures neither") {
    const std::string changes =
        "scan: a cell assigns no variables, minimizes nothing, adds no losses and gathers no rows";
    check(refused([](auto, auto w) {
              return [w](auto state, auto x) {
                  static_cast<void>(tg::minimize(mean(state * w), tg::sgd{}));
                  return step(tg::eval(state + x));
              };
          }),
          changes);
    check(refused([](auto scope, auto) {
              return [scope](auto state, auto x) {
                  scope.add_loss(mean(state * x));
                  return step(tg::eval(state + x));
              };
          }),
          changes);
    const auto own = [](auto s, auto xs) {
        const auto w = s.template variable<float>("w", {2, 3});
        const auto cell = [s](auto state, auto x) {
            s.minimize(mean(state * x));
            return step(tg::eval(state + x));
        };
        return tg::eval(mean(tg::scan(cell, w, xs).last));
    };
    check(support::message_of<tg::shape_error>([&] {
              static_cast<void>(tg::compile_step<tg::traced>(own, tg::spec<float, 2, tg::dyn, 3>{}, tg::sgd{}));
          }),
          changes);
}

TEST_CASE("run-time scans: a value that leaves its cell by a reference") {
    const auto escaping = [](auto use) {
        return support::message_of<tg::shape_error>([&] {
            static_cast<void>(tg::function<tg::traced>(
                [use](auto xs) {
                    auto kept = tg::eval(0 * tg::take(xs, 0, 1));
                    const auto [last, all] = tg::scan(
                        [&](auto state, auto x) {
                            kept = tg::eval(state * x);
                            return step(tg::eval(state + kept));
                        },
                        tg::eval(kept), xs);
                    return use(kept, last);
                },
                tg::spec<float, 2, tg::dyn>{}));
        });
    };
    check(escaping([](auto kept, auto last) { return tg::eval(kept + last); }),
          "scan: a value of a cell is used outside of it");
    check(escaping([](auto kept, auto) { return kept; }), "scan: a value of a cell is used outside of it");
    CHECK(escaping([](auto, auto last) { return last; }).empty());
}

} // namespace traced_scan_refusals_test
