#pragma once

/// Includes all functions of images: namespace tapegraph::data::images.

#include <tapegraph/data/images/image.hpp>

#include <tapegraph/data/images/affine.hpp>
#include <tapegraph/data/images/colour.hpp>
#include <tapegraph/data/images/crop.hpp>
#include <tapegraph/data/images/flip.hpp>
#include <tapegraph/data/images/mixing.hpp>
#include <tapegraph/data/images/normalization.hpp>
#include <tapegraph/data/images/resize.hpp>
