#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/data/dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph::data {

/// The result of every source of texts.
struct labelled_texts {
    std::vector<std::string> texts;
    std::vector<std::int32_t> labels;     ///< one per text, in [0, class_names.size())
    std::vector<std::string> class_names; ///< name of each label
    std::string origin;                   ///< name of the source in errors: "'reviews.csv'"; empty: none
    std::vector<std::int64_t> rows;       ///< row of each text in the origin; empty: text i is text i

    std::int64_t size() const { return static_cast<std::int64_t>(texts.size()); }
    /// "'reviews.csv', row 7" or "text 5".
    std::string name_of(std::size_t text) const {
        if (text >= rows.size()) return "text " + std::to_string(text);
        return (origin.empty() ? "" : origin + ", ") + "row " + std::to_string(rows[text]);
    }
    /// The texts of the given numbers, in this order.
    labelled_texts subset(const std::vector<std::int64_t>& numbers) const;
};

/// What splitting labelled texts returns.
struct split_texts {
    labelled_texts train, validation;
};

/// Splits texts as train_validation_split splits records, by the same numbers. Do this before
/// creating a vocabulary, which should only know the training texts.
split_texts train_validation_split(const labelled_texts& all, std::uint64_t seed, double fraction);

#if TG_DEFINES(data)

TG_DEFINITION labelled_texts labelled_texts::subset(const std::vector<std::int64_t>& numbers) const {
    labelled_texts part;
    part.class_names = class_names;
    part.origin = origin;
    for (const std::int64_t number : numbers) {
        if (number < 0 || number >= size())
            throw range_error("labelled_texts.subset: text " + std::to_string(number) + " of " +
                              std::to_string(size()));
        const auto i = static_cast<std::size_t>(number);
        part.texts.push_back(texts[i]);
        part.labels.push_back(labels[i]);
        part.rows.push_back(i < rows.size() ? rows[i] : number);
    }
    return part;
}

TG_DEFINITION split_texts train_validation_split(const labelled_texts& all, std::uint64_t seed, double fraction) {
    dataset numbers;
    numbers.add("label", all.labels);
    const split_datasets parts = train_validation_split(numbers, seed, fraction);
    const auto texts_of = [&](const dataset& part) {
        std::vector<std::int64_t> chosen;
        for (std::int64_t i = 0; i < part.size(); ++i) chosen.push_back(part.record_at(i));
        return all.subset(chosen);
    };
    return {texts_of(parts.train), texts_of(parts.validation)};
}

#endif

} // namespace tapegraph::data
