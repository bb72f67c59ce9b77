#include "common/documents/documents.h"

#include <utility>

#include "common/documents/json.h"
#include "common/documents/problem.h"

namespace muster {

namespace {

constexpr size_t kMaxDocuments = 1000;
constexpr size_t kMaxParts = 10000;  // with those that are empty, as templates leave many

// Returns the next line of `text` with its line end, and removes both from `text`.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end == text.npos ? text.size() : end + 1);
  text.remove_prefix(line.size());
  return line;
}

// Whether a line ends a document. Like kubectl, it accepts only a comment after the `---`.
bool is_separator(std::string_view line, const std::string& place) {
  if (!line.starts_with("---")) return false;
  const size_t at = line.find_first_not_of(" \t\r\n", 3);
  if (at == line.npos || line[at] == '#') return true;
  throw Malformed(place, "nothing but a comment after ---", "a value; put it on the next line");
}

bool is_list(const Document& document) {
  return string_or(document.value(), "kind", "") == "List" &&
         string_or(document.value(), "apiVersion", "") == "v1";
}

void require_items(const Document& list) {
  const Json& items = member(list.value(), "items");
  if (!items.is_array())
    throw Malformed(list.locate("items"), "a list of objects in the field items of a List",
                    items.is_null() ? "none" : describe(items));
}

void append(Document document, const std::string& source, std::vector<Document>& documents) {
  if (document.value().is_null()) return;
  if (!is_list(document)) {
    documents.push_back(std::move(document));
  } else {
    require_items(document);
    for (size_t i = 0; i < document.value()["items"].size(); ++i)
      append(document.part(child_path("items", i)), source, documents);
  }
  if (documents.size() > kMaxDocuments) throw Malformed(source, "at most 1000 documents", "more");
}

}  // namespace

std::vector<Document> parse_documents(std::string_view text, const std::string& source) {
  std::vector<Document> documents;
  const char* begin = text.data();
  int lines = 0;
  int lines_before = 0;
  size_t parts = 0;
  const auto end_part = [&](const char* end) {
    const std::string_view part(begin, static_cast<size_t>(end - begin));
    if (++parts > kMaxParts)
      throw Malformed(source, "at most 10000 documents, empty ones included", "more");
    append(Document::parse(part, source, lines_before), source, documents);
  };
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    ++lines;
    if (!is_separator(line, source + ":" + std::to_string(lines))) continue;
    end_part(line.data());
    begin = text.data();
    lines_before = lines;
  }
  end_part(text.data());
  if (documents.empty()) documents.push_back(Document::parse("", source));
  return documents;
}

}  // namespace muster
