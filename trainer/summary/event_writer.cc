#include "trainer/summary/event_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/error.h"
#include "common/program/log.h"
#include "common/random.h"
#include "common/system/file.h"
#include "common/system/system_words.h"
#include "common/threads/watched_work.h"
#include "proto/muster/event.pb.h"
#include "trainer/records/framing.h"

namespace muster::summary {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;
using std::chrono::system_clock;

double unix_seconds() {
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

std::string file_name() {
  return fmt::format("events.out.tfevents.{:010}.{}.{}.{:016x}",
                     static_cast<int64_t>(unix_seconds()), host_name(), getpid(), random_number());
}

// Returns an event with one value, whose tensor is still to be filled.
tensorboard::Event event_of(const std::string& tag, uint64_t step, const char* plugin,
                            tensorboard::DataClass data, tensorboard::DataType type) {
  tensorboard::Event event;
  event.set_wall_time(unix_seconds());
  event.set_step(static_cast<int64_t>(step));
  tensorboard::Summary::Value& entry = *event.mutable_summary()->add_value();
  entry.set_tag(tag);
  entry.mutable_metadata()->mutable_plugin_data()->set_plugin_name(plugin);
  entry.mutable_metadata()->set_data_class(data);
  entry.mutable_tensor()->set_dtype(type);
  entry.mutable_tensor()->mutable_tensor_shape();
  return event;
}

tensorboard::TensorProto& tensor_of(tensorboard::Event& event) {
  return *event.mutable_summary()->mutable_value(0)->mutable_tensor();
}

}  // namespace

EventWriter::EventWriter(const std::filesystem::path& directory,
                         std::chrono::milliseconds flush_every)
    : flush_every_(flush_every), flushed_(steady_clock::now()) {
  const std::filesystem::path path = directory / file_name();
  try {
    muster::create_directories(directory);
  } catch (const WriteError& error) {
    fail(error.what());
    return;
  }
  file_.open(path, std::ios::binary | std::ios::trunc);
  if (!file_) {
    fail(fmt::format("cannot create {}: {}", path.string(), system_words(errno)));
    return;
  }
  path_ = path;
  tensorboard::Event event;
  event.set_wall_time(unix_seconds());
  event.set_file_version("brain.Event:2");
  record(event.SerializeAsString());
  flush();
}

EventWriter::~EventWriter() {
  flush();
}

void EventWriter::scalar(const std::string& tag, uint64_t step, double value) {
  tensorboard::Event event =
      event_of(tag, step, "scalars", tensorboard::DATA_CLASS_SCALAR, tensorboard::DT_FLOAT);
  tensor_of(event).add_float_val(static_cast<float>(value));
  add(event.SerializeAsString());
}

void EventWriter::image(const std::string& tag, uint64_t step, std::string_view png, size_t height,
                        size_t width) {
  tensorboard::Event event =
      event_of(tag, step, "images", tensorboard::DATA_CLASS_BLOB_SEQUENCE, tensorboard::DT_STRING);
  tensorboard::TensorProto& tensor = tensor_of(event);
  tensor.mutable_tensor_shape()->add_dim()->set_size(3);
  tensor.add_string_val(std::to_string(width));
  tensor.add_string_val(std::to_string(height));
  tensor.add_string_val(std::string(png));
  add(event.SerializeAsString());
}

void EventWriter::add(const std::string& event) {
  const MutexLock lock(mutex_);
  record(event);
  if (steady_clock::now() - flushed_ >= flush_every_) flush_locked();
}

void EventWriter::flush() {
  const MutexLock lock(mutex_);
  flush_locked();
}

void EventWriter::record(const std::string& event) {
  if (failed_) return;
  const WatchedWork work(WatchedWork::Kind::storage, "writing", path_.native());
  const std::string bytes = records::frame_record(event);
  if (!file_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    fail(fmt::format("cannot write {}: {}", path_.string(), system_words(errno)));
  }
}

void EventWriter::flush_locked() {
  flushed_ = steady_clock::now();
  if (failed_ || !file_.is_open()) return;
  const WatchedWork work(WatchedWork::Kind::storage, "writing", path_.native());
  if (!file_.flush()) {
    fail(fmt::format("cannot write {}: {}", path_.string(), system_words(errno)));
  }
}

void EventWriter::fail(const std::string& reason) {
  failed_ = true;
  log::warning("no more events for TensorBoard: " + reason);
}

}  // namespace muster::summary
