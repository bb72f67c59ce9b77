#pragma once

#include <cpprest/astreambuf.h>

#include <functional>

namespace muster::kube {

// The stream to which cpprestsdk writes the body of an answer: each piece is passed on when it
// comes, and the next piece is read when the task returned by `on_piece` is done. A task that fails
// ends the answer.
class BodySink final : public concurrency::streams::details::streambuf_state_manager<uint8_t> {
 public:
  using OnPiece = std::function<pplx::task<size_t>(const uint8_t* data, size_t size)>;
  explicit BodySink(OnPiece on_piece)
      : streambuf_state_manager(std::ios_base::out), on_piece_(std::move(on_piece)) {}

  // The base class's versions wait for a task. If the waiting thread is the only one that runs
  // tasks, they wait for ever.
  pplx::task<void> close(std::ios_base::openmode) override {
    m_stream_can_write = false;
    return pplx::task_from_result();
  }
  pplx::task<void> close(std::ios_base::openmode mode, std::exception_ptr error) override {
    if (!m_currentException) m_currentException = error;
    return close(mode);
  }

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(size_t, std::ios_base::openmode) override {}
  size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return traits::eof(); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return traits::eof(); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return traits::eof();
  }
  bool acquire(uint8_t*& data, size_t& size) override {
    data = nullptr;
    size = 0;
    return false;
  }
  void release(uint8_t*, size_t) override {}

 protected:
  pplx::task<size_t> _putn(const uint8_t* data, size_t size) override {
    return on_piece_(data, size);
  }
  pplx::task<int_type> _putc(uint8_t byte) override {
    return on_piece_(&byte, 1).then([byte](size_t) { return static_cast<int_type>(byte); });
  }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  uint8_t* _alloc(size_t) override { return nullptr; }
  void _commit(size_t) override {}

  // The stream is never read.
  pplx::task<int_type> _bumpc() override { return end(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return end(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return end(); }
  pplx::task<int_type> _ungetc() override { return end(); }
  pplx::task<size_t> _getn(uint8_t*, size_t) override { return pplx::task_from_result<size_t>(0); }
  size_t _scopy(uint8_t*, size_t) override { return 0; }

 private:
  static pplx::task<int_type> end() { return pplx::task_from_result<int_type>(traits::eof()); }

  const OnPiece on_piece_;
};

}  // namespace muster::kube
