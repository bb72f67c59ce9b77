#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "common/digest.h"
#include "common/documents/json.h"
#include "common/error.h"
#include "trainer/checkpoint/files/manifest.h"

namespace muster::checkpoint {
namespace {

constexpr size_t kMostBytes = 16 << 20;

// One JSON object whose fields are read by type; errors name the source and the field's path.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail(where_, "an object", object);
  }

  const Json& any(const char* name) const {
    const auto it = object_.find(name);
    if (it == object_.end()) throw Invalid(fmt::format("{}{}: missing", where_, name));
    return *it;
  }
  uint64_t number(const char* name) const { return number_of(any(name), where_ + name); }
  bool has(const char* name) const { return object_.contains(name); }
  double real(const char* name) const { return real_of(any(name), where_ + name); }
  std::vector<double> reals(const char* name) const {
    std::vector<double> out;
    for (const Json& item : array(name)) out.push_back(real_of(item, where_ + name));
    return out;
  }
  std::string text(const char* name) const {
    if (!any(name).is_string()) fail(where_ + name, "a string", any(name));
    return any(name).get<std::string>();
  }
  bool boolean(const char* name) const {
    if (!any(name).is_boolean()) fail(where_ + name, "true or false", any(name));
    return any(name).get<bool>();
  }
  const Json& object(const char* name) const {
    if (!any(name).is_object()) fail(where_ + name, "an object", any(name));
    return any(name);
  }
  const Json& array(const char* name) const {
    if (!any(name).is_array()) fail(where_ + name, "an array", any(name));
    return any(name);
  }
  template <typename Integer>
  std::vector<Integer> numbers(const char* name) const {
    std::vector<Integer> out;
    for (const Json& item : array(name)) {
      out.push_back(static_cast<Integer>(number_of(item, where_ + name)));
    }
    return out;
  }
  Fields fields(const char* name) const { return {any(name), where_ + name + "."}; }
  std::vector<Fields> list(const char* name) const {
    std::vector<Fields> out;
    for (const Json& item : array(name)) {
      out.emplace_back(item, fmt::format("{}{}[{}].", where_, name, out.size()));
    }
    return out;
  }
  const std::string& where() const { return where_; }

 private:
  [[noreturn]] static void fail(const std::string& where, const char* expected, const Json& found) {
    throw Invalid(
        fmt::format("{}: expected {}, found {}", where, expected,
                    found.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 100)));
  }
  // null means a number that JSON cannot express.
  static double real_of(const Json& value, const std::string& where) {
    if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!value.is_number()) fail(where, "a number", value);
    return value.get<double>();
  }
  static uint64_t number_of(const Json& value, const std::string& where) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
      fail(where, "an integer from 0", value);
    }
    return value.get<uint64_t>();
  }

  const Json& object_;
  std::string where_;
};

std::string plain_name(const Fields& fields, const char* name) {
  std::string text = fields.text(name);
  if (text.empty() || text.front() == '.' || text.find('/') != std::string::npos ||
      text.find('\0') != std::string::npos) {
    throw Invalid(fmt::format("{}{}: expected the plain name of a file, found \"{}\"",
                              fields.where(), name, text));
  }
  return text;
}

EpochSums parse_sums(const std::vector<Fields>& list) {
  EpochSums sums;
  for (const Fields& epoch : list) {
    compute::LossSums of_epoch;
    of_epoch.loss = epoch.real("loss");
    of_epoch.rows = static_cast<int64_t>(epoch.number("rows"));
    if (epoch.has("correct")) {  // an earlier version of Muster: its losses had one more sum
      of_epoch.weight = static_cast<double>(of_epoch.rows);
      of_epoch.terms[0] = epoch.real("correct");
    } else {
      of_epoch.weight = epoch.real("weight");
      const std::vector<double> terms = epoch.reals("terms");
      std::copy_n(terms.begin(), std::min(terms.size(), of_epoch.terms.size()),
                  of_epoch.terms.begin());
    }
    sums.add(epoch.number("epoch"), of_epoch);
  }
  return sums;
}

std::optional<Best> parse_best(const Fields& evaluations, const char* name) {
  if (evaluations.any(name).is_null()) return std::nullopt;
  const Fields fields = evaluations.fields(name);
  Best best;
  best.value = fields.real("value");
  best.step = fields.number("step");
  best.epoch = fields.number("epoch");
  return best;
}

Evaluations parse_evaluations(const Fields& fields) {
  Evaluations evaluations;
  evaluations.epoch = fields.number("epoch");
  if (fields.has("step")) evaluations.step = fields.number("step");
  evaluations.best = parse_best(fields, "best");
  evaluations.without_improvement = fields.number("withoutImprovement");
  evaluations.kept = parse_best(fields, "kept");
  if (fields.has("reached")) evaluations.reached = parse_best(fields, "reached");
  return evaluations;
}

Position parse_position(const Fields& fields) {
  Position position;
  position.step = fields.number("step");
  position.epoch = fields.number("epoch");
  position.next_batch = fields.number("nextBatch");
  position.optimizer_t = fields.number("optimizerT");
  position.outstanding = fields.numbers<uint64_t>("outstanding");
  if (fields.has("sums")) position.sums = parse_sums(fields.list("sums"));
  if (fields.has("evaluations"))
    position.evaluations = parse_evaluations(fields.fields("evaluations"));
  return position;
}

FileEntry parse_file(const Fields& fields) {
  FileEntry file;
  file.name = plain_name(fields, "name");
  file.bytes = fields.number("bytes");
  const uint64_t crc = fields.number("crc32c");
  if (crc > UINT32_MAX) {
    throw Invalid(fmt::format("{}crc32c: expected 32 bits, found {}", fields.where(), crc));
  }
  file.crc32c = static_cast<uint32_t>(crc);
  return file;
}

Slice parse_slice(const Fields& fields) {
  Slice slice;
  slice.file = plain_name(fields, "file");
  slice.tensor = fields.text("tensor");
  slice.shape = fields.numbers<int64_t>("shape");
  slice.first_row = static_cast<int64_t>(fields.number("firstRow"));
  return slice;
}

// Checks the checksum at the end of the text, which to_text() writes.
void check_crc(std::string_view text, const std::string& source) {
  constexpr std::string_view kKey = "\"crc32c\": ";
  const size_t at = text.rfind(kKey);
  if (at == std::string_view::npos)
    throw Invalid(source + ": truncated: expected crc32c at its end");
  uint32_t recorded = 0;
  const auto [end, error] =
      std::from_chars(text.data() + at + kKey.size(), text.data() + text.size(), recorded);
  if (error != std::errc() || std::string_view(end, text.data() + text.size()) != "\n}\n") {
    throw Invalid(fmt::format("{}: expected it to end with crc32c, at byte {}", source, at));
  }
  const uint32_t found = crc32c(std::as_bytes(std::span(text.substr(0, at))));
  if (found != recorded) {
    throw Invalid(
        fmt::format("{}: damaged: its crc32c is {:08x}, expected {:08x}", source, found, recorded));
  }
}

Json parse_text(std::string_view text, const std::string& source) {
  JsonBounds bounds;
  const auto is_within = [&](int depth, Json::parse_event_t event, Json&) {
    if (bounds.take(depth, event)) return true;
    throw Invalid(
        fmt::format("{}: expected at most {} levels, and {} members in each object, "
                    "found more",
                    source, JsonBounds::kMostLevels, JsonBounds::kMostMembers));
  };
  try {
    return Json::parse(text, is_within);
  } catch (const Json::parse_error& error) {
    throw Invalid(fmt::format("{}: no JSON at byte {}: {}", source, error.byte, error.what()));
  } catch (const Json::exception& error) {  // a number that no double holds
    throw Invalid(fmt::format("{}: no JSON: {}", source, error.what()));
  }
}

// Earlier versions did not say what has ended a training, and later ones may know more.
End parse_end(const Fields& fields, const Evaluations& evaluations) {
  if (!fields.has("endedBy")) return evaluations.reached ? End::stop_when : End::length;
  const auto found = std::ranges::find(kEndWords, fields.text("endedBy"));
  return found == kEndWords.end() ? End::length : static_cast<End>(found - kEndWords.begin());
}

}  // namespace

Manifest parse_manifest(std::string_view text, const std::string& source) {
  if (text.size() > kMostBytes) {
    throw Invalid(
        fmt::format("{}: expected at most {} bytes, found {}", source, kMostBytes, text.size()));
  }
  check_crc(text, source);
  const Json json = parse_text(text, source);
  const Fields fields(json, source + ": ");
  if (const uint64_t version = fields.number("version"); version != 1) {
    throw Invalid(fmt::format("{}: version: expected 1, found {}", source, version));
  }
  Manifest manifest;
  manifest.job_uid = fields.text("jobUid");
  manifest.generation = fields.number("generation");
  manifest.position = parse_position(fields.fields("position"));
  if (fields.boolean("final")) manifest.ended = parse_end(fields, manifest.position.evaluations);
  manifest.model = fields.text("model");
  manifest.layout_fingerprint = fields.text("layoutFingerprint");
  manifest.fingerprint = fields.text("fingerprint");
  manifest.shard_steps = fields.numbers<uint64_t>("shardSteps");
  for (const Fields& file : fields.list("files")) manifest.files.push_back(parse_file(file));
  for (const Fields& slice : fields.list("slices")) manifest.slices.push_back(parse_slice(slice));
  manifest.metrics = fields.object("metrics");
  manifest.training = fields.object("training");
  if (fields.has("samples")) manifest.samples = fields.object("samples");
  if (fields.has("request")) manifest.request = fields.text("request");
  return manifest;
}

std::string FolderName::text() const {
  return fmt::format("ckpt-{}-g{}", step, generation);
}

std::optional<FolderName> FolderName::parse(std::string_view name) {
  constexpr std::string_view kPrefix = "ckpt-", kBetween = "-g";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const char* const end = name.data() + name.size();
  FolderName folder;
  auto result = std::from_chars(name.data() + kPrefix.size(), end, folder.step);
  if (result.ec != std::errc() || !std::string_view(result.ptr, end).starts_with(kBetween)) {
    return std::nullopt;
  }
  result = std::from_chars(result.ptr + kBetween.size(), end, folder.generation);
  if (result.ec != std::errc() || folder.text() != name) return std::nullopt;
  return folder;
}

}  // namespace muster::checkpoint
