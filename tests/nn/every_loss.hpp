#pragma once

#include <tapegraph/nn/losses/all.hpp>
#include <tapegraph/nn/metrics/all.hpp>

/// Lists of all losses and metrics, for properties that all must have. tools/check_lists.py compares them with the headers.

namespace every_loss {

namespace tg = tapegraph;

/// f(loss) for every loss.
template <class F>
constexpr void for_every_loss(const F& f) {
    f(tg::sigmoid_cross_entropy{});
    f(tg::binary_cross_entropy{});
    f(tg::softmax_cross_entropy{});
    f(tg::sparse_softmax_cross_entropy{});
    f(tg::mean_squared_error{});
    f(tg::mean_absolute_error{});
    f(tg::mean_absolute_percentage_error{});
    f(tg::mean_squared_logarithmic_error{});
    f(tg::huber{});
    f(tg::log_cosh{});
    f(tg::pinball{});
    f(tg::poisson{});
    f(tg::kl_divergence{});
    f(tg::cosine_similarity{});
    f(tg::categorical_cross_entropy{});
    f(tg::sparse_categorical_cross_entropy{});
    f(tg::smoothed<tg::sigmoid_cross_entropy>{});
    f(tg::smoothed<tg::softmax_cross_entropy>{});
    f(tg::smoothed<tg::sparse_softmax_cross_entropy>{});
    f(tg::smoothed<tg::sparse_categorical_cross_entropy>{});
    f(tg::binary_focal_cross_entropy{});
    f(tg::sigmoid_focal_cross_entropy{});
    f(tg::categorical_focal_cross_entropy{});
    f(tg::softmax_focal_cross_entropy{});
    f(tg::hinge{});
    f(tg::squared_hinge{});
    f(tg::categorical_hinge{});
    f(tg::dice{});
    f(tg::dice_per_record{});
    f(tg::tversky{});
    f(tg::tversky_per_record{});
    f(tg::triplet_semi_hard{});
    f(tg::triplet_hard{});
    f(tg::ctc{});
}

enum class labels_of_metric {
    elements,          ///< of the output's shape
    classes,           ///< class numbers of the output's shape without its last axis
    classes_or_one_hot ///< either of them
};

/// f(metric, labels) for every metric, of outputs of four classes.
template <class F>
constexpr void for_every_metric(const F& f) {
    using enum labels_of_metric;
    f(tg::binary_accuracy{}, elements);
    f(tg::categorical_accuracy{}, classes_or_one_hot);
    f(tg::sparse_categorical_accuracy{}, classes_or_one_hot);
    f(tg::top_k_categorical_accuracy<2>{}, classes_or_one_hot);
    f(tg::sparse_top_k_categorical_accuracy<2>{}, classes_or_one_hot);
    f(tg::precision{}, elements);
    f(tg::recall{}, elements);
    f(tg::specificity{}, elements);
    f(tg::fbeta_score{}, elements);
    f(tg::f1_score{}, elements);
    f(tg::auc{}, elements);
    f(tg::basic_auc<3>{}, elements);
    f(tg::confusion_matrix<4>{}, classes_or_one_hot);
    f(tg::io_u<4>{}, classes_or_one_hot);
    f(tg::mean_io_u<4>{}, classes_or_one_hot);
    f(tg::loss_mean<tg::mean_absolute_error>{}, elements);
    f(tg::loss_mean<tg::huber>{}, elements);
    f(tg::root_mean_squared_error{}, elements);
    f(tg::mean_cosine_similarity{}, elements);
    f(tg::perplexity{}, classes);
    f(tg::basic_perplexity<0>{}, classes);
    f(tg::r2_score{}, elements);
}

} // namespace every_loss
