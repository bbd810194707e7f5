#include "cells.hpp"

#include <cstdlib>
#include <sstream>

namespace mode_study {

const std::vector<model_entry>& all_models() {
    static const std::vector<std::int64_t> lengths{140, 1400, 14000};
    // Taps x channels x filters of each layer, divided by the strides before it.
    static const std::vector<model_entry> models{
        {"small", 30, lengths, 40.0 * 30 * 128 / 4},
        {"medium", 30, lengths, 20.0 * (30 * 64 + 64 * 128 + 128 * 256 + 256 * 256 + 256 * 128 + 128 * 64)},
        {"large", 30, lengths,
         (400.0 * 30 * 64 + 200.0 * 64 * 128 + 12.0 * (128 * 256 + 39 * 256 * 256)) / 4 + 20.0 * 256 * 512 / 8 +
             (10.0 * 512 * 1028 + 1028 * 256) / 16},
        {"recurrent_small", 16, {400}, 400.0 * 16 * 128 / 4},
        {"recurrent_medium", 16, {400}, 2 * 4.0 * 512 * (16 + 512) + 4.0 * 512 * (1024 + 512) + 400.0 * 512 * 128 / 4},
    };
    return models;
}

const model_entry* find_model(const std::string& name) {
    for (const model_entry& m : all_models())
        if (name == m.name) return &m;
    return nullptr;
}

std::string cell::word() const {
    return model + ":" + std::to_string(length) + ":" + mode + ":" + training + ":" + source;
}

cell cell::from_word(const std::string& word) {
    std::istringstream in(word);
    cell c;
    std::string length;
    for (std::string* part : {&c.model, &length, &c.mode, &c.training, &c.source}) std::getline(in, *part, ':');
    c.length = std::atoll(length.c_str());
    return c;
}

} // namespace mode_study
