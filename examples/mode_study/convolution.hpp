#pragma once

#include "training.hpp"

#include "../models/conv1d_large.hpp"
#include "../models/conv1d_medium.hpp"
#include "../models/conv1d_small.hpp"

namespace mode_study {

template <class Mode>
measurement run_convolution(const cell& c, const options& o, const series& data) {
    // These models end with averages over time and so take any length: one compiled step serves
    // all.
    using records = tg::spec<float, tg::dyn, tg::dyn, 30>;
    if (c.model == "small") return run<Mode, records>(models::conv1d_small{}, c, o, data);
    if (c.model == "medium") return run<Mode, records>(models::conv1d_medium{}, c, o, data);
    return run<Mode, records>(models::conv1d_large{}, c, o, data);
}

} // namespace mode_study
