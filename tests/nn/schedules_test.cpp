#include <tapegraph/nn/optimizers/all.hpp>

#include <nn/every_schedule.hpp>
#include <nn/hand_gradients.hpp>

#include <limits>

/// Schedules, and numbers of optimizers that follow them.

namespace schedules_test {

using namespace hand_gradients;

namespace {

constexpr std::int64_t steps[9]{0, 1, 4, 5, 7, 10, 13, 20, 31};

// A few roundings of numbers of at most 0.1.
template <class S>
void check(const S& schedule, const double (&expected)[9]) {
    const tg::hyperparameter number = schedule;
    for (int i = 0; i < 9; ++i) {
        CAPTURE(steps[i]);
        CHECK(std::abs(number.at(steps[i]) - expected[i]) < 1e-16);
    }
}
double one_over(std::int64_t step) { return 1 / (1.0 + static_cast<double>(step)); }

} // namespace

// Keras 3.15.1 at these steps, float64: keras.optimizers.schedules.
TEST_CASE("schedules have Keras's numbers") {
    check(tg::exponential_decay{.initial_learning_rate = 0.1, .decay_steps = 5, .decay_rate = 0.7},
          {0.1, 0.09311499150948377, 0.07517586466500456, 0.06999999999999999, 0.060692811506678636,
           0.048999999999999995, 0.039559874396917556, 0.024009999999999997, 0.010954885636099252});
    check(tg::exponential_decay{.initial_learning_rate = 0.1, .decay_steps = 5, .decay_rate = 0.7, .staircase = true},
          {0.1, 0.1, 0.1, 0.06999999999999999, 0.06999999999999999, 0.048999999999999995, 0.048999999999999995,
           0.024009999999999997, 0.011764899999999997});
    check(tg::inverse_time_decay{.initial_learning_rate = 0.1, .decay_steps = 5, .decay_rate = 0.7},
          {0.1, 0.08771929824561404, 0.06410256410256411, 0.05882352941176471, 0.05050505050505051, 0.04166666666666667,
           0.03546099290780142, 0.026315789473684213, 0.018726591760299626});
    check(tg::inverse_time_decay{.initial_learning_rate = 0.1, .decay_steps = 5, .decay_rate = 0.7, .staircase = true},
          {0.1, 0.1, 0.1, 0.05882352941176471, 0.05882352941176471, 0.04166666666666667, 0.04166666666666667,
           0.026315789473684213, 0.019230769230769235});
    check(tg::polynomial_decay{.initial_learning_rate = 0.1, .decay_steps = 10, .end_learning_rate = 0.01, .power = 2},
          {0.1, 0.0829, 0.04240000000000001, 0.0325, 0.018100000000000005, 0.01, 0.01, 0.01, 0.01});
    check(
        tg::polynomial_decay{
            .initial_learning_rate = 0.1, .decay_steps = 10, .end_learning_rate = 0.01, .power = 0.5, .cycle = true},
        {0.1, 0.09538149682454625, 0.0797137002317335, 0.07363961030678928, 0.05929503017546497, 0.01,
         0.06324471804789655, 0.01, 0.05269074841227313});
    check(tg::piecewise_constant_decay<2>{.boundaries = {4, 10}, .values = {0.1, 0.05, 0.01}},
          {0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.01, 0.01, 0.01});
}

// Keras computes cosines of a float32 pi, so these are its formulas in Python's floats (math.cos); they differ from Keras by 1e-8.
TEST_CASE("schedules of half waves have the formulas' numbers") {
    check(tg::cosine_decay{.initial_learning_rate = 0.1, .decay_steps = 20, .alpha = 0.1},
          {0.1, 0.0994459753267812, 0.09140576474687263, 0.08681980515339464, 0.07542957248827961, 0.05500000000000001,
           0.034570427511720396, 0.010000000000000002, 0.010000000000000002});
    check(
        tg::cosine_decay{
            .initial_learning_rate = 0.01, .decay_steps = 15, .alpha = 0.1, .warmup_target = 0.1, .warmup_steps = 5},
        {0.01, 0.027999999999999997, 0.08199999999999999, 0.1, 0.09610954559391705, 0.07750000000000001,
         0.0502962191529556, 0.010000000000000002, 0.010000000000000002});
    check(tg::cosine_decay_restarts{.initial_learning_rate = 0.1, .first_decay_steps = 4, .m_mul = 0.8, .alpha = 0.1},
          {0.1, 0.08681980515339464, 0.08200000000000002, 0.07925966317040634, 0.05977660356514324,
           0.020544155877284295, 0.06704661607561306, 0.038800000000000015, 0.05508790533527011});
    check(tg::cosine_decay_restarts{.initial_learning_rate = 0.1, .first_decay_steps = 4, .t_mul = 1, .m_mul = 0.8},
          {0.1, 0.08535533905932738, 0.08000000000000002, 0.0682842712474619, 0.011715728752538103, 0.03200000000000001,
           0.043701933598375625, 0.03276800000000001, 0.0030712079981053495});
    // PyTorch's _annealing_cos over the phases of OneCycleLR(max_lr=0.1, total_steps=21)
    check(tg::one_cycle{.max_rate = 0.1, .total_steps = 21},
          {0.0040000000000000036, 0.012188527098390314, 0.08644034833812791, 0.09924306774148466, 0.09673623556045154,
           0.07682751154913771, 0.046263710266697504, 4e-07, 4e-07});
}

TEST_CASE("after a warm-up any schedule follows, from its first step") {
    // optax 0.2.8: join_schedules([linear_schedule(0.02, 0.1, 5), exponential_decay(0.1, 5, 0.7)], [5])
    check(tg::linear_warmup{.steps = 5, .start = 0.02, .target = 0.1}.then(
              tg::exponential_decay{.initial_learning_rate = 0.1, .decay_steps = 5, .decay_rate = 0.7}),
          {0.020000000000000004, 0.036000000000000004, 0.084, 0.1, 0.08670401643811235, 0.06999999999999999,
           0.056514106281310796, 0.03429999999999999, 0.01564983662299893});
    const tg::hyperparameter alone = tg::linear_warmup{.steps = 4, .target = 0.5};
    CHECK(alone.at(0) == 0);
    CHECK(alone.at(3) == 0.375);
    CHECK(alone.at(4) == 0.5);
    CHECK(alone.at(1000000) == 0.5);
}

TEST_CASE("a number of an optimizer is set and read as a double is") {
    tg::adam adam{.learning_rate = 0.5};
    CHECK(adam.learning_rate == 0.5);
    adam.learning_rate *= 0.5;
    CHECK(adam.learning_rate == 0.25);
    adam.learning_rate /= 2;
    const double read = adam.learning_rate;
    CHECK(read == 0.125);
    CHECK(2 * adam.learning_rate + 1 == 1.25);
    adam.learning_rate = 1;
    CHECK(!adam.learning_rate.scheduled());
    adam.learning_rate = one_over;
    CHECK(adam.learning_rate.scheduled());
    CHECK(adam.learning_rate == 1); // of the first step
    CHECK(adam.learning_rate.at(3) == 0.25);
    adam.numbers(4); // the fourth update has step 3
    CHECK(adam.learning_rate == 0.25);
    adam.learning_rate *= 2; // the whole schedule from here on
    CHECK(adam.learning_rate.at(1) == 1);
    adam.learning_rate = [](std::int64_t step) { return step < 2 ? 0.1 : 0.01; };
    CHECK(adam.learning_rate.at(1) == 0.1);
    CHECK(adam.learning_rate.at(2) == 0.01);
    CHECK(&tg::learning_rate_of(adam) == &adam.learning_rate);
    tg::chain chain{tg::clip_by_value{}, adam};
    CHECK(&tg::learning_rate_of(chain) == &chain.get<tg::adam>().learning_rate);
}

TEST_CASE("the first update has step 0, in both modes") {
    each_mode([](auto mode) {
        auto model = made<decltype(mode)>(tg::sgd{.learning_rate = one_over});
        auto w = starting_weights<double>();
        for (int step = 1; step <= 4; ++step) {
            if (step == 4) model.optimizer().learning_rate *= 0.5;
            const auto g = gradient_at(w, step);
            one_step(model, step);
            for (int i = 0; i < 6; ++i) w.mutable_data()[i] -= (step == 4 ? 0.125 : 1.0 / step) * g.data()[i];
        }
        check_close(model.variables()["w"].template value<double>(),
                    {w.data()[0], w.data()[1], w.data()[2], w.data()[3], w.data()[4], w.data()[5]});
    });
}

namespace {

/// The numbers that twelve steps of a model in Mode and T have seen: with a gradient of -1, what a weight gains.
template <class Mode, class T>
void check_in_model(const tg::hyperparameter& number) {
    auto model =
        tg::compile<Mode>(matrix_model{}, tg::spec<T, 3, 2>{}, given_gradient{}, tg::sgd{.learning_rate = number});
    const auto zeros = tg::zeros<T>({3, 2}), slope = tg::full<T>({3, 2}, -1);
    for (std::int64_t step = 0; step < 12; ++step) {
        CAPTURE(step);
        model.variables()["w"].assign(zeros);
        model.train_on_batch(zeros, slope);
        CHECK(model.variables()["w"].template value<T>()(0, 0) == static_cast<T>(number.at(step)));
    }
}

} // namespace

TEST_CASE("every schedule's numbers are those of the steps of models, in both modes, in double and in float") {
    every_schedule::for_every_schedule([](const std::string& what, const auto& schedule, const auto&, std::int64_t) {
        INFO(what);
        each_mode([&](auto mode) {
            check_in_model<decltype(mode), double>(schedule);
            check_in_model<decltype(mode), float>(schedule);
        });
    });
}

TEST_CASE("what cannot be a number of an optimizer is refused, and nothing has changed") {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const auto says = [](const auto& optimizer, const char* what) {
        CHECK_THROWS_WITH_AS(optimizer.numbers(1), what, tg::argument_error);
    };
    says(tg::sgd{.learning_rate = -0.1}, "sgd: learning_rate must not be negative, step 1 has -0.1");
    says(tg::adam{.learning_rate = nan}, "adam: learning_rate must be finite, step 1 has nan");
    says(tg::adam{.beta1 = 1}, "adam: beta1 must be below 1, step 1 has 1");
    says(tg::adamw{.weight_decay = -1}, "adamw: weight_decay must not be negative, step 1 has -1");
    says(tg::ftrl{.learning_rate_power = 0.5}, "ftrl: learning_rate_power must not be positive, step 1 has 0.5");
    says(tg::rmsprop{.momentum = 0.5}, "rmsprop: momentum must be 0, rmsprop_momentum has one, step 1 has 0.5");
    says(tg::proximal_adagrad{.initial_accumulator_value = 0},
         "proximal_adagrad: initial_accumulator_value must be positive, step 1 has 0");
    says(tg::clip_by_global_norm{.norm = 0}, "clip_by_global_norm: norm must be positive, step 1 has 0");
    says(tg::weight_average{.decay = 1.5}, "weight_average: decay must be at most 1, step 1 has 1.5");
    says(tg::accumulate{.steps = 0}, "accumulate: steps must be positive, given 0");
    says(tg::sgd{.learning_rate = tg::exponential_decay{.decay_steps = 0}},
         "exponential_decay: decay_steps must be positive, step 1 has 0");
    each_mode([](auto mode) {
        auto model =
            made<decltype(mode)>(tg::momentum{.learning_rate = [](std::int64_t step) { return step < 1 ? 0.1 : -1; }});
        one_step(model, 1);
        const auto before = model.variables()["w"].template value<double>();
        CHECK_THROWS_WITH_AS(one_step(model, 2), "momentum: learning_rate must not be negative, step 2 has -1",
                             tg::argument_error);
        CHECK(same_bits(model.variables()["w"].data(), before));
        CHECK(model.step() == 1);
    });
}

} // namespace schedules_test
