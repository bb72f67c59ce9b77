#include "trainer/ps/transport/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <cstring>

#include "trainer/host/arithmetic.h"

namespace muster::ps {

namespace pb = google::protobuf;

namespace {

constexpr int kValuesField = 15;

// Copies the fields before the floats into `header`, and returns where the floats are.
template <class Message>
std::optional<Decoded<Message>> decode_any(grpc::ByteBuffer& buffer, WireType wire) {
  grpc::ProtoBufferReader reader(&buffer);
  if (!reader.status().ok()) return std::nullopt;
  pb::io::CodedInputStream input(&reader);
  std::string text;
  Decoded<Message> decoded;
  {
    pb::io::StringOutputStream text_stream(&text);
    pb::io::CodedOutputStream output(&text_stream);
    const uint32_t values_tag = pb::internal::WireFormatLite::MakeTag(
        kValuesField, pb::internal::WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
    while (const uint32_t tag = input.ReadTag()) {
      if (tag == values_tag) {
        uint32_t bytes = 0;
        if (!input.ReadVarint32(&bytes) || bytes % width_of(wire) != 0) return std::nullopt;
        decoded.at_byte = static_cast<size_t>(input.CurrentPosition());
        if (decoded.at_byte + bytes != buffer.Length()) return std::nullopt;
        decoded.count = bytes / width_of(wire);
        break;
      }
      if (!pb::internal::WireFormatLite::SkipField(&input, tag, &output)) return std::nullopt;
    }
    if (decoded.at_byte == 0 && !input.ConsumedEntireMessage()) return std::nullopt;
  }
  if (!decoded.header.ParseFromString(text)) return std::nullopt;
  return decoded;
}

// Decodes a message; returns nothing if its sums or contributors are implausible.
template <class Message>
std::optional<Decoded<Message>> decode(grpc::ByteBuffer& buffer, WireType wire) {
  auto decoded = decode_any<Message>(buffer, wire);
  if (!decoded) return std::nullopt;
  const auto& header = decoded->header;
  if (!get_sums(header).plausible() || header.contributors().size() > kMostContributors / 8)
    return std::nullopt;
  return decoded;
}

std::string to_bytes(const Contributors& contributors) {
  std::string bytes;
  for (size_t rank = contributors._Find_first(); rank < contributors.size();
       rank = contributors._Find_next(rank)) {
    bytes.resize(rank / 8 + 1);
    bytes.back() = static_cast<char>(bytes.back() | 1 << rank % 8);
  }
  return bytes;
}

Contributors from_bytes(const std::string& bytes) {
  Contributors contributors;
  for (size_t rank = 0; rank < std::min(bytes.size() * 8, contributors.size()); ++rank)
    contributors[rank] = (bytes[rank / 8] >> rank % 8 & 1) != 0;
  return contributors;
}

}  // namespace

grpc::ByteBuffer encode(const pb::MessageLite& header, const grpc::Slice& values) {
  std::string text;
  {
    pb::io::StringOutputStream stream(&text);
    pb::io::CodedOutputStream output(&stream);
    header.SerializeToCodedStream(&output);
    if (values.size() > 0) {
      output.WriteTag(pb::internal::WireFormatLite::MakeTag(
          kValuesField, pb::internal::WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
      output.WriteVarint32(static_cast<uint32_t>(values.size()));
    }
  }
  const grpc::Slice slices[2] = {grpc::Slice(text), values};
  return grpc::ByteBuffer(slices, values.size() > 0 ? 2 : 1);
}

std::optional<Decoded<Push>> decode_push(grpc::ByteBuffer& buffer, WireType wire) {
  return decode<Push>(buffer, wire);
}
std::optional<Decoded<Reply>> decode_reply(grpc::ByteBuffer& buffer, WireType wire) {
  return decode<Reply>(buffer, wire);
}

std::optional<Decoded<Forward>> decode_forward(grpc::ByteBuffer& buffer) {
  return decode_any<Forward>(buffer, WireType::float32);
}
std::optional<Acknowledgement> decode_acknowledgement(grpc::ByteBuffer& buffer) {
  auto decoded = decode_any<Acknowledgement>(buffer, WireType::float32);
  if (!decoded || decoded->count > 0) return std::nullopt;
  return std::move(decoded->header);
}

namespace {

// Converts bytes to floats piece by piece as they come; a number may be split between two pieces.
class Bfloat16Reader {
 public:
  explicit Bfloat16Reader(std::span<float> to) : left_(to) {}

  void take(const std::byte* data, size_t bytes) {
    if (half_taken_ && bytes > 0 && !left_.empty()) {
      const std::byte both[2] = {half_, *data++};
      convert(both, 1);
      half_taken_ = false;
      --bytes;
    }
    const size_t whole = std::min(left_.size(), bytes / 2);
    convert(data, whole);
    if (bytes > 2 * whole && !left_.empty()) {
      half_ = data[2 * whole];
      half_taken_ = true;
    }
  }

 private:
  void convert(const std::byte* data, size_t count) {
    arithmetic_.from_bfloat16(static_cast<int64_t>(count), data, left_.data());
    left_ = left_.subspan(count);
  }
  const host::Arithmetic& arithmetic_ = host::arithmetic();
  std::span<float> left_;
  std::byte half_{};
  bool half_taken_ = false;
};

class FloatReader {
 public:
  explicit FloatReader(std::span<float> to) : left_(std::as_writable_bytes(to)) {}

  void take(const std::byte* data, size_t bytes) {
    const size_t part = std::min(left_.size(), bytes);
    std::memcpy(left_.data(), data, part);
    left_ = left_.subspan(part);
  }

 private:
  std::span<std::byte> left_;
};

template <class Reader>
void read_from(grpc::ByteBuffer& buffer, size_t at_byte, size_t bytes, Reader to) {
  grpc::ProtoBufferReader reader(&buffer);
  reader.Skip(static_cast<int>(at_byte));
  const void* data = nullptr;
  int length = 0;
  while (bytes > 0 && reader.Next(&data, &length)) {
    const size_t part = std::min(bytes, static_cast<size_t>(length));
    to.take(static_cast<const std::byte*>(data), part);
    bytes -= part;
  }
}

}  // namespace

void copy_floats(grpc::ByteBuffer& buffer, size_t at_byte, std::span<float> to, WireType wire) {
  const size_t bytes = to.size() * width_of(wire);
  if (wire == WireType::bfloat16)
    read_from(buffer, at_byte, bytes, Bfloat16Reader(to));
  else
    read_from(buffer, at_byte, bytes, FloatReader(to));
}

grpc::Slice to_bfloat16(std::span<const float> values) {
  grpc::Slice slice(values.size() * width_of(WireType::bfloat16));
  host::arithmetic().to_bfloat16(static_cast<int64_t>(values.size()), values.data(),
                                 const_cast<uint8_t*>(slice.begin()));
  return slice;
}

grpc::Slice slice_of(Lendable::Loan loan) {
  const size_t bytes = loan->size() * sizeof(float);
  auto* owner = new Lendable::Loan(std::move(loan));
  return {const_cast<float*>((*owner)->data()), bytes,
          [](void* lent) { delete static_cast<Lendable::Loan*>(lent); }, owner};
}

Push to_message(const PushHeader& header) {
  Push message;
  message.set_generation(header.generation);
  message.set_rank(header.rank);
  message.set_step(header.step);
  message.set_sequence(header.sequence);
  message.set_ticket(header.ticket);
  message.set_pull(header.pull);
  message.set_newest(header.newest);
  message.set_contributors(to_bytes(header.contributors));
  set_sums(message, header.sums);
  return message;
}

PushHeader from_message(const Push& message) {
  PushHeader header;
  header.generation = message.generation();
  header.rank = message.rank();
  header.step = message.step();
  header.sequence = message.sequence();
  header.ticket = message.ticket();
  header.pull = message.pull();
  header.newest = message.newest();
  header.contributors = from_bytes(message.contributors());
  header.sums = get_sums(message);
  return header;
}

Reply to_message(const ReplyHeader& header) {
  Reply message;
  switch (header.status) {
    case Status::ok:
      message.set_status(Reply::OK);
      break;
    case Status::superseded:
      message.set_status(Reply::SUPERSEDED);
      break;
    case Status::rejected:
      message.set_status(Reply::REJECTED);
      break;
  }
  message.set_message(header.message);
  message.set_generation(header.generation);
  message.set_step(header.step);
  message.set_sequence(header.sequence);
  set_sums(message, header.sums);
  message.set_has_ticket(header.ticket.has_value());
  message.set_ticket(header.ticket.value_or(0));
  message.set_finished(header.finished);
  message.set_contributors(to_bytes(header.contributors));
  return message;
}

ReplyHeader from_message(const Reply& message) {
  ReplyHeader header;
  header.status = message.status() == Reply::OK           ? Status::ok
                  : message.status() == Reply::SUPERSEDED ? Status::superseded
                                                          : Status::rejected;
  header.message = message.message();
  header.generation = message.generation();
  header.step = message.step();
  header.sequence = message.sequence();
  header.sums = get_sums(message);
  if (message.has_ticket()) header.ticket = message.ticket();
  header.finished = message.finished();
  header.contributors = from_bytes(message.contributors());
  return header;
}

}  // namespace muster::ps
