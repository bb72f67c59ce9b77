#include "trainer/records/record_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "common/random.h"
#include "common/system/file.h"
#include "trainer/records/framing.h"

namespace muster::records {
namespace {

constexpr size_t kBuffer = 1 << 20;

}  // namespace

RecordWriter::RecordWriter(std::filesystem::path path) : path_(std::move(path)) {
  temporary_ = path_;
  temporary_ += fmt::format(".{:016x}.tmp", random_number());
  file_ = Descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  finished_ = !file_;  // then there is nothing to remove
  if (finished_) fail();
}

RecordWriter::~RecordWriter() {
  if (!finished_) ::unlink(temporary_.c_str());
}

void RecordWriter::fail() const {
  throw WriteError("cannot write " + path_.string(), errno);
}

void RecordWriter::write(std::string_view bytes) {
  buffer_ += frame_record(bytes);
  ++count_;
  if (buffer_.size() >= kBuffer) flush();
}

void RecordWriter::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    rest.remove_prefix(static_cast<size_t>(written));
  }
  buffer_.clear();
}

void RecordWriter::finish() {
  flush();
  if (::fsync(file_.get()) != 0) fail();
  if (!file_.close_checked()) fail();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  finished_ = true;
  sync_directory(path_.has_parent_path() ? path_.parent_path() : ".");
}

}  // namespace muster::records
