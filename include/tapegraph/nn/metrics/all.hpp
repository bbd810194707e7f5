#pragma once

/// Includes all metrics, and their accumulator.

#include <tapegraph/nn/metrics/accumulator.hpp>
#include <tapegraph/nn/metrics/accuracy.hpp>
#include <tapegraph/nn/metrics/auc.hpp>
#include <tapegraph/nn/metrics/confusion.hpp>
#include <tapegraph/nn/metrics/confusion_matrix.hpp>
#include <tapegraph/nn/metrics/mean.hpp>
