#include <tapegraph/nn/optimizers/all.hpp>

#include <nn/hand_gradients.hpp>

/// Twenty steps of every optimizer that is not made of Adam, as Keras makes them.

namespace optimizers_keras_test {

using namespace hand_gradients;

// Weights after 20 steps of Keras 3.15.1 (jax 0.10.2, float64; numpy for the proximal ones, which are TensorFlow 1's):
//
//     def grad(w, t): return 0.5 * w + ((7 * t + 5 * np.arange(6).reshape(3, 2)) % 11 - 5) / 8
//     v = keras.Variable(np.array([0.5, -0.75, 1.25, 0.1, -0.3, 2.0]).reshape(3, 2), dtype="float64")
//     for t in range(1, 21): optimizer.apply([ops.convert_to_tensor(grad(np.array(v), t))], [v])
//
// with learning_rate=0.05 (Adadelta 1.0) and what stands beside each. Muon's
// are numpy's: Keras has its norm in float32, so that it differs by 6e-9.

TEST_CASE("twenty steps as Keras: sgd") {
    check_twenty_steps(tg::sgd{.learning_rate = 0.05}, {0.2736386642690544, -0.43478563251819297, 0.7702413131643687,
                                                        0.07040088511560344, -0.18236514750559438, 1.2161935377547608});
}

TEST_CASE("twenty steps as Keras: momentum") {
    check_twenty_steps(tg::momentum{.learning_rate = 0.05},
                       {-0.20316585188651723, 0.26675166193019545, -0.40342107933401755, -0.06084471788775635,
                        0.11570480014585663, -0.6754359107097643});
}

TEST_CASE("twenty steps as Keras: Nesterov's momentum") {
    check_twenty_steps(tg::nesterov_momentum{.learning_rate = 0.05},
                       {-0.16673606967589832, 0.20713717161760847, -0.2919948068807967, -0.04266680768486845,
                        0.07238053027254272, -0.48352029097650007});
}

TEST_CASE("twenty steps as Keras: Adagrad") {
    check_twenty_steps(tg::adagrad{.learning_rate = 0.05},
                       {0.31850805088801803, -0.5351799602046016, 0.9640142426169074, 0.0849281652535673,
                        -0.1803577293995634, 1.694073578686999});
}

TEST_CASE("twenty steps as Keras: Adadelta") {
    check_twenty_steps(tg::adadelta{.learning_rate = 1},
                       {0.4871092980214222, -0.7358923946744695, 1.229192678179406, 0.0981324258266399,
                        -0.28976450681661126, 1.9793834586423809});
}

TEST_CASE("twenty steps as Keras: RMSProp") {
    check_twenty_steps(tg::rmsprop{.learning_rate = 0.05},
                       {0.055464236024948516, -0.16320340065351197, 0.4141570815968203, 0.06300670200796857,
                        -0.03379317128696414, 0.9831438262182156});
}

TEST_CASE("twenty steps as Keras: RMSProp with momentum") {
    check_twenty_steps(tg::rmsprop_momentum{.learning_rate = 0.05},
                       {0.23836902123858228, -0.15967514779799036, 0.17805196337127432, -0.04908993734306864,
                        -0.33067740701818293, -0.33038203950069384});
}

TEST_CASE("twenty steps as Keras: centred RMSProp") {
    check_twenty_steps(tg::centered_rmsprop{.learning_rate = 0.05},
                       {0.03854705200556433, -0.1287318056311491, 0.3313494839131586, 0.061594414055889515,
                        -0.024287071550653863, 0.758380988732531});
}

TEST_CASE("twenty steps as Keras: centred RMSProp with momentum") {
    check_twenty_steps(tg::centered_rmsprop_momentum{.learning_rate = 0.05, .momentum = 0.5},
                       {-0.03798210048895514, 0.001957066739932869, 0.09298383934773455, -0.007603171084561697,
                        0.000550261933340998, 0.22828747297542176});
}

TEST_CASE("twenty steps as Keras: FTRL") {
    check_twenty_steps(tg::ftrl{.learning_rate = 0.05},
                       {0.12148820704699831, -0.33377229368897965, 0.5552219368747324, 0.05078615613852633,
                        0.012456516911085042, 1.3401244283514877});
}

TEST_CASE("twenty steps as Keras: FTRL, regularized") {
    check_twenty_steps(tg::ftrl{.learning_rate = 0.05,
                                .l1_regularization_strength = 0.05,
                                .l2_regularization_strength = 0.02,
                                .l2_shrinkage_regularization_strength = 0.01,
                                .beta = 0.1},
                       {0.10019799721102027, -0.29945868106643403, 0.4905559924531526, 0.04166114492523406,
                        0.00981306402654621, 1.2540396394681608});
}

TEST_CASE("twenty steps as Keras: proximal gradient descent") {
    check_twenty_steps(tg::proximal_gradient_descent{.learning_rate = 0.05,
                                                     .l1_regularization_strength = 0.3,
                                                     .l2_regularization_strength = 0.2},
                       {0.005411068408451066, -0.1386391099171745, 0.4166713567829783, 0.009900990099009903,
                        -0.006868199196157239, 0.7846874560721369});
}

TEST_CASE("twenty steps as Keras: proximal Adagrad") {
    check_twenty_steps(tg::proximal_adagrad{.learning_rate = 0.05,
                                            .l1_regularization_strength = 0.3,
                                            .l2_regularization_strength = 0.2},
                       {0.08331911598124168, -0.310989100124743, 0.7094506540916896, 0.005400230627374768,
                        -0.003933212603865873, 1.4927227429468082});
}

TEST_CASE("twenty steps as Keras: clip_by_norm") {
    check_twenty_steps(tg::chain{tg::clip_by_norm{.norm = 0.5}, tg::sgd{.learning_rate = 0.05}},
                       {0.4229278808982534, -0.6352996886796074, 1.07201931107356, 0.08730265324019165,
                        -0.2552845199492687, 1.693682919334985});
}

TEST_CASE("twenty steps as Keras: clip_by_value") {
    check_twenty_steps(tg::chain{tg::clip_by_value{.value = 0.25}, tg::sgd{.learning_rate = 0.05}},
                       {0.40309820474555963, -0.6177163639252476, 1.0530201549041753, 0.0904514323602295,
                        -0.2467285663444213, 1.7500000000000009});
}

} // namespace optimizers_keras_test
