#include <tapegraph/core/environment.hpp>

#include <doctest/doctest.h>

namespace environment_test {

namespace tg = tapegraph;
using tg::detail::environment_choice, tg::detail::environment_flag;

constexpr const char* name = "TAPEGRAPH_ENVIRONMENT_TEST";

struct variable {
    explicit variable(const char* value) { ::setenv(name, value, 1); }
    ~variable() { ::unsetenv(name); }
};

int animal(int otherwise = 7) { return environment_choice(name, {"cat", "dog", "mouse"}, otherwise); }

TEST_CASE("environment: a word is found, and what is not set or empty leaves the default") {
    CHECK(animal() == 7);
    const variable empty("");
    CHECK(tg::detail::environment(name) == nullptr);
    CHECK(animal() == 7);
    const variable cat("cat");
    CHECK(animal() == 0);
    const variable mouse("mouse");
    CHECK(animal() == 2);
}

TEST_CASE("environment: a word that is none of those is refused by variable, value and words") {
    for (const char* value : {"cow", "Cat", "cat ", "do", "0"}) {
        const variable set(value);
        CHECK_THROWS_WITH_AS(animal(), (std::string(name) + "='" + value + "': expected cat, dog or mouse").c_str(),
                             tg::argument_error);
    }
}

TEST_CASE("environment: flags are 0 or 1") {
    CHECK(environment_flag(name, true));
    CHECK(!environment_flag(name, false));
    {
        const variable off("0");
        CHECK(!environment_flag(name, true));
    }
    {
        const variable on("1");
        CHECK(environment_flag(name, false));
    }
    const variable wrong("off");
    CHECK_THROWS_WITH_AS(environment_flag(name, true), (std::string(name) + "='off': expected 0 or 1").c_str(),
                         tg::argument_error);
}

} // namespace environment_test
