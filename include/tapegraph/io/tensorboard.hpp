#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/io/tensorboard/event_file.hpp>
#include <tapegraph/io/tensorboard/histogram.hpp>
#include <tapegraph/io/tensorboard/hyperparameters.hpp>
#include <tapegraph/io/tensorboard/images.hpp>
#include <tapegraph/io/tensorboard/node_times.hpp>
#include <tapegraph/io/tensorboard/wire.hpp>

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Logs runs for TensorBoard, without TensorFlow:
///
///     tg::io::event_writer events("logs/first");
///     events.scalar("loss", 0.31, step);
///
/// Needs protozero, and for images zlib. `tg::tensorboard` (io/callbacks/tensorboard.hpp) logs fit.

namespace tapegraph::io {

/// Writes events of one run into its folder; one writer at a time. Events are buffered and written
/// together, as whole records: when the buffer is full, by the first event a second after the last
/// write, by flush(), and in the destructor, also after an exception. All functions throw
/// data_error on failure. Not thread-safe.
class event_writer {
public:
    /// Throws data_error if the folder cannot be created or written to, if it contains events of
    /// another run and options.resume is not set, and if another writer has it.
    explicit event_writer(const files::path& folder, const event_options& options = {})
        : file_(std::make_unique<detail::event_file>(folder, options)) {
        add([&](std::string& to) {
            detail::wire::writer event(to);
            detail::wire::event_head(event, file_->now(), 0);
            detail::wire::text(event, 3, "brain.Event:2");
        });
    }

    /// A number of a step, stored as a float, as in TensorBoard. Takes less than a microsecond and
    /// allocates nothing.
    void scalar(std::string_view tag, double value, std::int64_t step) {
        add([&](std::string& to) {
            detail::wire::scalar_event(to, file_->now(), step, tag, static_cast<float>(value));
        });
    }

    /// The distribution of values, in `buckets` of equal width; values that are not finite are
    /// omitted. Takes a tensor of any type, or contiguous numbers.
    void histogram(std::string_view tag, const any_tensor& values, std::int64_t step, int buckets = 30) {
        add_buckets(tag, histogram_buckets(values, buckets), step);
    }
    template <class T>
    void histogram(std::string_view tag, std::span<const T> values, std::int64_t step, int buckets = 30) {
        add_buckets(tag, histogram_buckets(values, buckets), step);
    }
    template <class T>
    void histogram(std::string_view tag, const std::vector<T>& values, std::int64_t step, int buckets = 30) {
        add_buckets(tag, histogram_buckets(std::span<const T>(values), buckets), step);
    }

    /// Images: [height, width], [height, width, channels] or [n, height, width, channels] with 1 to
    /// 4 channels, u8, or floating point in [0, 1] (clipped, with NaN as black). Of several the
    /// first `most`. Throws shape_error and dtype_error for other tensors. Needs zlib.
    void image(std::string_view tag, const any_tensor& pictures, std::int64_t step, int most = 3) {
        const detail::encoded_images images(pictures, most);
        add([&](std::string& to) {
            detail::wire::strings_event(to, file_->now(), step, tag, images.strings, "images",
                                        detail::wire::class_blobs);
        });
    }

    /// Markdown; several texts are rows of a table.
    void text(std::string_view tag, std::string_view markdown, std::int64_t step) { texts(tag, {&markdown, 1}, step); }
    /// Writes a list of Markdown texts for the step, which TensorBoard shows under "Text".
    void texts(std::string_view tag, std::span<const std::string_view> markdown, std::int64_t step) {
        add([&](std::string& to) {
            detail::wire::strings_event(to, file_->now(), step, tag, markdown, "text", detail::wire::class_tensor);
        });
    }

    /// The settings of the run, and the scalars by which runs are compared. Call it before any
    /// other hyperparameters of the folder. `group`: runs of one group are shown as one, with the
    /// mean of their metrics.
    void hyperparameters(std::span<const hyperparameter> values, std::span<const hyperparameter_metric> metrics,
                         std::string_view group = {}) {
        add_hyperparameters("_hparams_/experiment", detail::wire::experiment(values, metrics));
        add_hyperparameters("_hparams_/session_start_info", detail::wire::session_start(values, group, file_->now()));
    }
    void hyperparameters(std::initializer_list<hyperparameter> values,
                         std::initializer_list<hyperparameter_metric> metrics, std::string_view group = {}) {
        hyperparameters(std::span(values.begin(), values.size()), std::span(metrics.begin(), metrics.size()), group);
    }
    /// How the run with these hyperparameters ended.
    void end_session(bool success = true) {
        add_hyperparameters("_hparams_/session_end_info", detail::wire::session_end(success, file_->now()));
    }

    /// The run's graph: bytes of a GraphDef from io::graph_def(model).
    void graph(std::string_view graph_def) {
        add([&](std::string& to) {
            detail::wire::writer event(to);
            detail::wire::event_head(event, file_->now(), 0);
            detail::wire::text(event, 4, graph_def);
        });
    }
    /// Measured times and memory of the graph's nodes in one step, which the graph tab shows under
    /// this tag. Use each tag once.
    void node_times(std::string_view tag, std::span<const node_time> times, std::int64_t step) {
        add([&](std::string& to) { detail::wire::node_times_event(to, file_->now(), step, tag, times); });
    }

    /// Passes everything to the system, so that TensorBoard sees it.
    void flush() { file_->flush(); }
    /// The same if the last write was event_options::flush_seconds ago.
    void flush_if_due() { file_->flush_if_due(); }
    /// The path of the file, in the run's folder.
    const files::path& path() const { return file_->path(); }

private:
    template <class Write>
    void add(const Write& write) {
        file_->add(write);
    }
    void add_buckets(std::string_view tag, const std::vector<histogram_bucket>& buckets, std::int64_t step) {
        add([&](std::string& to) { detail::wire::histogram_event(to, file_->now(), step, tag, buckets); });
    }
    void add_hyperparameters(std::string_view tag, const std::string& content) {
        add([&](std::string& to) { detail::wire::hyperparameters_event(to, file_->now(), tag, content); });
    }

    std::unique_ptr<detail::event_file> file_;
};

} // namespace tapegraph::io
