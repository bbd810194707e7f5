#include <tapegraph/nn/optimizers/all.hpp>

#include <nn/hand_gradients.hpp>

/// Twenty steps of Adam and what is made of it, as Keras makes them.

namespace optimizers_adam_family_test {

using namespace hand_gradients;

// Weights after 20 steps of Keras 3.15.1 (jax 0.10.2, float64; numpy for the proximal ones, which are TensorFlow 1's):
//
//     def grad(w, t): return 0.5 * w + ((7 * t + 5 * np.arange(6).reshape(3, 2)) % 11 - 5) / 8
//     v = keras.Variable(np.array([0.5, -0.75, 1.25, 0.1, -0.3, 2.0]).reshape(3, 2), dtype="float64")
//     for t in range(1, 21): optimizer.apply([ops.convert_to_tensor(grad(np.array(v), t))], [v])
//
// with learning_rate=0.05 (Adadelta 1.0) and what stands beside each. Muon's
// are numpy's: Keras has its norm in float32, so that it differs by 6e-9.

TEST_CASE("twenty steps as Keras: Adam") {
    check_twenty_steps(tg::adam{.learning_rate = 0.05}, {0.037354156207434555, -0.1765611905404912, 0.4835297007377631,
                                                         0.03819639521351492, 0.009287102088266493, 1.131763410857983});
}

TEST_CASE("twenty steps as Keras: AMSGrad") {
    check_twenty_steps(tg::amsgrad{.learning_rate = 0.05, .beta2 = 0.9},
                       {0.03801992514488718, -0.17173718416848274, 0.4891541555127904, 0.039226138766005864,
                        0.006756077580181535, 1.1128602900091336});
}

TEST_CASE("twenty steps as Keras: AdamW") {
    check_twenty_steps(tg::adamw{.learning_rate = 0.05, .weight_decay = 0.1},
                       {0.02464665364389796, -0.14695351427515893, 0.4158278018648806, 0.03180401228945197,
                        0.013241094839493584, 0.9942824977822221});
}

TEST_CASE("twenty steps as Keras: Adamax") {
    check_twenty_steps(tg::adamax{.learning_rate = 0.05},
                       {0.18021279969502366, -0.3617609412695395, 0.7400421681300644, 0.07863686842805222,
                        -0.06545469226748643, 1.3919865614559537});
}

TEST_CASE("twenty steps as Keras: Nadam") {
    check_twenty_steps(tg::nadam{.learning_rate = 0.05},
                       {0.13946878431869783, -0.302369299131367, 0.6435059278603672, 0.04841957477887976,
                        -0.06457075103107378, 1.3262335628640531});
}

TEST_CASE("twenty steps as Keras: Lion") {
    check_twenty_steps(tg::lion{.learning_rate = 0.05, .weight_decay = 0.1},
                       {-0.021566871644988498, -0.01236764528669703, 0.1768679030894476, -0.005625405680861388,
                        0.012661417431641328, 0.8553257632954109});
}

TEST_CASE("twenty steps as Keras: LAMB") {
    check_twenty_steps(tg::lamb{.learning_rate = 0.05, .weight_decay = 0.1},
                       {-0.01834233290931743, -0.08528486818920153, 0.31576546106880043, 0.019958018803780703,
                        0.03579830179980152, 0.8644222848225369});
}

TEST_CASE("twenty steps as Keras: Muon") {
    check_twenty_steps(tg::muon{.learning_rate = 0.05, .weight_decay = 0.1},
                       {0.3464956918726891, -0.6004550924593606, 0.8354244793702608, 0.03278818815864507,
                        -0.2716544900054125, 1.568293131283095});
}

TEST_CASE("twenty steps as Keras: clip_by_global_norm") {
    check_twenty_steps(tg::chain{tg::clip_by_global_norm{.norm = 0.5}, tg::adam{.learning_rate = 0.05}},
                       {0.07866098392802164, -0.16730025869312803, 0.4805875287767428, 0.019083415042805862,
                        -0.008083914421310012, 1.0805644528254943});
}

TEST_CASE("twenty steps as Keras: accumulate") {
    check_twenty_steps(tg::chain{tg::accumulate{.steps = 4}, tg::adam{.learning_rate = 0.05}},
                       {0.2768267544266403, -0.5226045858245827, 1.0084198142694034, 0.004023468184320684,
                        -0.09007134945133484, 1.754350720315538});
}

TEST_CASE("the whole chain as Keras: global norm, AdamW, cosine with warm-up, average") {
    // AdamW(weight_decay=0.1, global_clipnorm=0.5, use_ema=True, ema_momentum=0.9); the schedule evaluated in double and assigned in each step, because
    // Keras has it in float32. Then finalize_variable_values.
    const tg::chain chain{tg::clip_by_global_norm{.norm = 0.5},
                          tg::adamw{.learning_rate = tg::cosine_decay{.initial_learning_rate = 0.01,
                                                                      .decay_steps = 15,
                                                                      .alpha = 0.1,
                                                                      .warmup_target = 0.1,
                                                                      .warmup_steps = 5},
                                    .weight_decay = 0.1},
                          tg::weight_average{.decay = 0.9}};
    check_twenty_steps(chain,
                       {0.030148678531472684, -0.09286725120653536, 0.3383733042733709, -0.0023368690523538306,
                        0.015902282414323857, 0.8460386709320622},
                       {0.1482655808872443, -0.27402947114202303, 0.609855428313546, 0.025814550879093626,
                        -0.05719219940630095, 1.2024647213478823});
}

} // namespace optimizers_adam_family_test
