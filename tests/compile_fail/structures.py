#!/usr/bin/env python3
"""Misspells an option in a call of something that takes it, once for every public structure of options that options.py does not look at:
of readers, pipelines, files, profiles and the like; and a member of every optimizer, schedule, loss, metric and callback. The compiler must
say one error for each, of at most 12 lines and 2,000 characters. A structure that no call is written for here is an error, so that whoever
adds one sees what its users will.

usage: structures.py INCLUDE_FOLDER -- COMPILER FLAGS...
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

MOST_LINES, MOST_CHARACTERS = 12, 2000
STRUCTURE = re.compile(r"^struct (\w*options) \{", re.MULTILINE)
OWN_CALL = re.compile(r"no_such_option_in<(\w+)>")
# Structures whose aliases options.py names.
ALIASED = {"basic_depthwise_layer_options", "basic_separable_layer_options", "basic_conv_transpose_layer_options"}

WRONG = "{.no_such_option = 1}"
CALLS = {
    "affine_options": "tg::data::images::rotate(picture, 0.5, WRONG)",
    "arrow_options": "arrow.dataset(WRONG)",
    "batch_options": "records.batch(8, WRONG)",
    "bucket_options": "set.bucket_by_length([](const auto& r) { return 1; }, WRONG)",
    "byte_pair_training_options": "tg::data::learn_byte_pair_encoding(texts, WRONG)",
    "category_encoding_options": "tg::data::category_encoding(WRONG)",
    "checkpoint_manager_options": "tg::checkpoint_manager(\"a\", WRONG)",
    "checkpoint_options": "tg::estimator(model, \"a\", WRONG)",
    "colour_jitter_options": "tg::data::images::random_colour_jitter(picture, WRONG, random)",
    "csv_options": "tg::data::read_csv(\"a\", WRONG)",
    "csv_reader_options": "tg::io::csv_reader(\"a\", WRONG)",
    "event_options": "tg::io::event_writer(\"a\", WRONG)",
    "explain_options": "tg::explain(model, WRONG)",
    "foreign_options": "tg::io::load_pytorch(model, \"a\", WRONG)",
    "hashed_crossing_options": "tg::data::hashed_crossing(WRONG)",
    "hashing_options": "tg::data::hashing(WRONG)",
    "image_folder_options": "tg::data::read_image_folder(\"a\", WRONG)",
    "interleave_options": "set.interleave([](const auto& r) { return r; }, WRONG)",
    "jpeg_options": "tg::data::decode_jpeg(bytes, WRONG)",
    "lookup_options": "tg::data::string_lookup(WRONG)",
    "map_options": "set.map([](auto& r) {}, WRONG)",
    "minimization_options": "tg::minimize([](const auto& x) { return x[0]; }, values, tg::lbfgs{}, WRONG)",
    "minimize_options": "tg::minimize(node, tg::sgd{}, WRONG)",
    "model_input_options": "tg::data::images::model_input_into(picture, std::span<float>(values), 8, 8, WRONG)",
    "npz_options": "tg::io::write_npz(\"a\", tensors, WRONG)",
    "onnx_options": "tg::io::export_onnx(model, \"a\", WRONG)",
    "quantization_options": "tg::io::export_quantized_onnx(model, \"a\", {}, WRONG)",
    "options": "tg::random::normal<float>({2}, WRONG)",
    "padded_options": "set.padded_batch(8, WRONG)",
    "padding_options": "tg::data::pad_sequences(sequences, WRONG)",
    "parameter_options": "tg::parameter_servers(cluster, model, tg::sgd{}, WRONG)",
    "pool_options": "tg::data::detail::worker_pool(work, WRONG)",
    "profile_options": "tg::profile([] {}, WRONG)",
    "random_affine_options": "tg::data::images::random_affine(picture, WRONG, random)",
    "random_resized_crop_options": "tg::data::images::random_resized_crop(picture, 8, 8, random, WRONG)",
    "read_events_options": "tg::io::read_scalars(\"a\", WRONG)",
    "record_file_options": "tg::data::record_file(\"a\", WRONG)",
    "record_stream_options": "tg::data::streamed_records(\"a\", WRONG)",
    "resize_options": "tg::data::images::resize(picture, 8, 8, WRONG)",
    "series_window_options": "tg::data::timeseries_dataset_from_array(values, 1, WRONG)",
    "shuffle_options": "set.shuffle(1, WRONG)",
    "skipgram_options": "tg::data::skipgrams(numbers, 8, WRONG)",
    "table_options": "profiled.text(WRONG)",
    "tape_options": "tg::gradient_tape tape(WRONG)",
    "text_table_options": "tg::data::read_text_table(\"a\", WRONG)",
    "texture_options": "tg::data::textured_blobs(8, 1, WRONG)",
    "token_options": "tg::data::standardize(\"a\", WRONG)",
    "tokenizer_options": "tg::data::tokenizer(WRONG)",
    "variable_options": "scope.variable<float>(\"w\", {2}, WRONG)",
    "vectorizer_options": "tg::data::text_vectorizer(WRONG)",
    "weights_source_options": "tg::io::write_weights_source(\"a\", model, WRONG)",
    "window_options": "set.window(WRONG)",
    "word_piece_options": "tg::data::word_piece(texts, WRONG)",
    "word_sequence_options": "tg::data::text_to_word_sequence(\"a\", WRONG)",
    "zip_options": "tg::io::zip_writer(\"a\", WRONG)",
}
# Where the other structures are whose members users set: optimizers, schedules, losses, metrics, callbacks. All of them are looked at.
ROOMS = ["nn/optimizers", "nn/losses", "nn/metrics", "train/callbacks", "io/callbacks"]
WITH_MEMBERS = re.compile(r"(?<!>\n)^struct (\w+)(?: : [^\n{]*)? \{|^using (\w+) = (?:detail::)?basic_\w+<", re.MULTILINE)
# Templates there that no alias names.
TEMPLATES = ["confusion_matrix<3>", "io_u<3>", "loss_mean<tg::mean_squared_error>", "mean_io_u<3>",
             "piecewise_constant_decay<1>", "rate_for<\"a\">", "smoothed<tg::softmax_cross_entropy>",
             "sparse_top_k_categorical_accuracy<5>", "top_k_categorical_accuracy<5>"]

PROGRAM = """#include <tapegraph/all.hpp>
namespace tg = tapegraph;
struct net {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "out", x, {.units = 1}); }
};
inline auto made() { return tg::compile<tg::graph>(net{}, tg::spec<float, tg::dyn, 2>{}, tg::mean_squared_error{}, tg::adam{}); }
inline auto some_set() { return tg::data::elements(std::vector<int>{1, 2}); }
void calls(decltype(made())& model, decltype(some_set())& set, tg::data::images::image<float>& picture, tg::data::dataset& records,
           tg::data::counter_random& random, std::vector<std::string>& texts, std::vector<float>& values, std::vector<std::int32_t>& numbers,
           std::vector<std::vector<std::int32_t>>& sequences, std::vector<std::uint8_t>& bytes, tg::profile_result& profiled,
           std::map<std::string, tg::any_tensor>& tensors, tg::graph_node node, tg::eager_scope& scope, tg::data::arrow_table& arrow,
           tg::server& cluster, tg::data::detail::pool_work& work) {
"""


def blocks_of(output, name):
    """What the compiler says of each line of a file."""
    blocks = {}
    place = re.compile(rf"\S*{name}:(\d+):\d+: error: ")
    for block in re.split(rf"(?=^\S*{name}:\d+:\d+: error: )", output, flags=re.MULTILINE):
        if at := place.match(block):
            blocks.setdefault(int(at[1]), []).append(block)
    return blocks


def members_of(folder):
    """The public structures of a folder, without those of its namespaces detail."""
    for room in ROOMS:
        for each in sorted((folder / room).glob("*.hpp")):
            first, *others = each.read_text(encoding="utf-8").split("namespace detail {")
            public = first + "".join(part.split("} // namespace detail", 1)[-1] for part in others)
            yield from (name or alias for name, alias in WITH_MEMBERS.findall(public))


def main():
    include, separator, command = pathlib.Path(sys.argv[1]), sys.argv[2:3], sys.argv[3:]
    if separator != ["--"] or not command:
        sys.exit(__doc__)
    found, own = set(), set()
    for path in sorted((include / "tapegraph").rglob("*.hpp")):
        text = path.read_text(encoding="utf-8")
        found |= set(STRUCTURE.findall(text))
        own |= set(OWN_CALL.findall(text))
    complaints = [f"no call for {name}" for name in sorted(found - own - ALIASED - set(CALLS))]
    complaints += [f"there is no {name}" for name in sorted(set(CALLS) - found)]
    others = sorted({*members_of(include / "tapegraph"), *TEMPLATES})
    calls = [call.replace("WRONG", WRONG) for call in [*CALLS.values(), *(f"tg::{name} WRONG" for name in others)]]
    first = PROGRAM.count("\n") + 1
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "structures.cpp")
        source.write_text(PROGRAM + "".join(f"    {call};\n" for call in calls) + "}\n", encoding="utf-8")
        every = ["-ferror-limit=0"] if "clang" in command[0] else []
        output = subprocess.run([*command, "-DTG_NO_THIRD_PARTY", *every, str(source)], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False, env=dict(os.environ, LC_ALL="C")).stdout
    blocks = blocks_of(output, "structures.cpp")
    for number, call in enumerate(calls, first):
        of_call = blocks.get(number, [])
        text = "".join(of_call).replace(f"{include.parent}/", "") # wherever the repository lies
        if len(of_call) != 1 or "no_such_option" not in text:
            complaints.append(f"{call}: {len(of_call)} errors: {text[:300] or 'accepted'}")
        elif len(text.splitlines()) > MOST_LINES or len(text) > MOST_CHARACTERS:
            complaints.append(f"{call}: {len(text.splitlines())} lines, {len(text)} characters")
    print(f"{len(calls)} calls, {len(complaints)} complaints", *complaints, sep="\n")
    sys.exit(1 if complaints or not calls else 0)


if __name__ == "__main__":
    main()
