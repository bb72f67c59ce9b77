#include "trainer/ps/wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <cstring>

namespace muster::ps {

namespace pb = google::protobuf;

namespace {

constexpr int kValuesField = 15;
constexpr int64_t kMostRows = int64_t{1} << 40;

// Copies fields up to the floats into `header`, and says where the floats are.
template <class Message>
std::optional<Decoded<Message>> decode(grpc::ByteBuffer& buffer) {
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
        if (!input.ReadVarint32(&bytes) || bytes % sizeof(float) != 0) return std::nullopt;
        decoded.at_byte = static_cast<size_t>(input.CurrentPosition());
        if (decoded.at_byte + bytes != buffer.Length()) return std::nullopt;
        decoded.count = bytes / sizeof(float);
        break;
      }
      if (!pb::internal::WireFormatLite::SkipField(&input, tag, &output)) return std::nullopt;
    }
    if (decoded.at_byte == 0 && !input.ConsumedEntireMessage()) return std::nullopt;
  }
  if (!decoded.header.ParseFromString(text)) return std::nullopt;
  const auto& header = decoded.header;
  if (header.rows() < 0 || header.rows() > kMostRows || header.correct() < 0 ||
      header.correct() > header.rows())
    return std::nullopt;
  return decoded;
}

template <class Message>
void set_sums(Message& message, const compute::LossSums& sums) {
  message.set_rows(sums.rows);
  message.set_loss(sums.loss);
  message.set_correct(sums.correct);
}

template <class Message>
compute::LossSums get_sums(const Message& message) {
  compute::LossSums sums;
  sums.rows = message.rows();
  sums.loss = message.loss();
  sums.correct = message.correct();
  return sums;
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

std::optional<Decoded<Push>> decode_push(grpc::ByteBuffer& buffer) {
  return decode<Push>(buffer);
}
std::optional<Decoded<Reply>> decode_reply(grpc::ByteBuffer& buffer) {
  return decode<Reply>(buffer);
}

void copy_floats(grpc::ByteBuffer& buffer, size_t at_byte, std::span<float> to) {
  grpc::ProtoBufferReader reader(&buffer);
  reader.Skip(static_cast<int>(at_byte));
  auto* target = reinterpret_cast<std::byte*>(to.data());
  size_t left = to.size_bytes();
  const void* data = nullptr;
  int bytes = 0;
  while (left > 0 && reader.Next(&data, &bytes)) {
    const size_t part = std::min(left, static_cast<size_t>(bytes));
    std::memcpy(target, data, part);
    target += part;
    left -= part;
  }
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
  message.set_contributors(header.contributors);
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
  header.contributors = message.contributors();
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
  message.set_contributors(header.contributors);
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
  header.contributors = message.contributors();
  return header;
}

}  // namespace muster::ps
