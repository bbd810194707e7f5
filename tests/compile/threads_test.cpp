#include <nn/models.hpp>

#include <thread>

namespace threads_test {

using namespace nn_test;

TEST_CASE("predict from several threads gives what one gives") {
    each_mode([](auto mode) {
        const thread_limit limit(1);
        const auto model = tg::compile<decltype(mode)>(small_cnn{}, cnn_spec<float>{}, {.seed = 8});
        constexpr int threads = 4, rounds = 5;
        std::vector<tg::tensor<float>> inputs, expected;
        for (int i = 0; i < threads; ++i) { // sizes differ, so that programs on the shelf are replanned
            inputs.push_back(noise<float>({1 + 2 * i, 26, 26, 3}, static_cast<std::uint64_t>(i)));
            expected.push_back(model.predict(inputs.back()));
        }
        std::vector<int> wrong(threads, 0);
        std::vector<std::thread> team;
        for (int t = 0; t < threads; ++t)
            team.emplace_back([&, t] {
                for (int r = 0; r < rounds; ++r) {
                    const auto at = static_cast<std::size_t>((t + r) % threads);
                    wrong[static_cast<std::size_t>(t)] += !same_bits(model.predict(inputs[at]), expected[at]);
                }
            });
        for (std::thread& t : team) t.join();
        CHECK(wrong == std::vector<int>(threads, 0));
    });
}

TEST_CASE("models of one type train in threads of their own") {
    each_mode([](auto mode) {
        const thread_limit limit(1);
        const auto run = [&] {
            auto model = tg::compile<decltype(mode)>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{},
                                                     tg::sgd{.learning_rate = 0.1}, {.seed = 3});
            double loss = 0;
            for (std::uint64_t i = 0; i < 5; ++i)
                loss = model.train_on_batch(noise<float>({8, 6}, i), classes(8, 3, i)).loss;
            return loss;
        };
        const double expected = run();
        double found[2]{};
        std::thread other([&] { found[1] = run(); });
        found[0] = run();
        other.join();
        CHECK(found[0] == expected);
        CHECK(found[1] == expected);
    });
}

TEST_CASE("a thread counts as one caller while it predicts or trains, also between kernels and in kernels that are not "
          "shared") {
    each_mode([](auto mode) {
        const thread_limit limit(1);
        struct seen {
            int calls = 0, callers = 0;
            static void look(void* of) noexcept {
                auto& mine = *static_cast<seen*>(of);
                ++mine.calls;
                if (const int now = tg::cpu::detail::caller_count::at_least(100); now != 1) mine.callers = now;
            }
        } mine{.calls = 0, .callers = 1};
        auto model = tg::compile<decltype(mode)>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{},
                                                 tg::sgd{.learning_rate = 0.1});
        const auto x = noise<float>({8, 6}, 1);
        const auto y = classes(8, 3, 1);
        const tg::cpu::listen_between_tasks listen(&seen::look, &mine);
        static_cast<void>(model.predict(x));
        CHECK(mine.calls > 0);
        const int before = mine.calls;
        model.train_on_batch(x, y);
        CHECK(mine.calls > before);
        static_cast<void>(model.evaluate(x, y));
        CHECK(mine.callers == 1);
        CHECK(tg::cpu::detail::caller_count::at_least(100) == 0);
    });
}

} // namespace threads_test
