#include "common/documents/malformed_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "common/documents/document.h"

namespace muster {

namespace {

struct Translation {
  std::string_view message;  // the beginning of yaml-cpp's message
  const char* expected;
  const char* found;
};

// The most frequent mistakes. Like the parser's messages, these texts say what was found, not what
// was meant.
constexpr Translation kTranslations[] = {
    {"illegal map value", "one value for a field",
     "another ':'; put a text that has ': ' in it between quotes, and fields of an object below "
     "their name"},
    {"illegal map key", "a value, or fields all at one indentation", "a field in between"},
    {"illegal block entry", "the entries of a list on lines of their own",
     "a '-' beside another value"},
    {"illegal flow end", "a value", "a closing ']' or '}' that nothing opened"},
    {"end of map not found", "fields all at one indentation",
     "a line that is indented otherwise, or a field without ':'"},
    {"end of sequence not found", "list entries ('- ') all at one indentation",
     "a line that is none"},
    {"illegal EOF in scalar", "a closing quote", "the end of the text"},
    {"illegal document indicator in scalar", "a closing quote", "the document's end"},
    {"illegal tab when looking for indentation", "spaces as indentation", "a tab"},
    {"unknown token", "a value",
     "a character that cannot begin one, such as a tab, %, @ or `; put a text that begins with "
     "it between quotes"},
    {"unknown escape character", "an escape such as \\n or \\u00e4 between double quotes",
     "another one; between single quotes \\ stands for itself"},
    {"bad character found while scanning hex number", "hexadecimal digits after \\x, \\u or \\U",
     "something else"},
    {"invalid unicode", "the number of a character after \\u or \\U", "none of Unicode's"},
    {"cannot set zero indentation", "an indentation of 1 to 9 after | or >", "0"},
    {"unexpected character in block scalar", "the text of | or > on the lines below it",
     "something beside it"},
    {"cannot assign multiple", "a value", "several tags, anchors or aliases before it"},
    {"alias", "a name after *", "none; quote a text that begins with *"},
    {"anchor", "a name after &", "none; quote a text that begins with &"},
    {"illegal character found while scanning alias", "a space or the line's end after *name",
     "something else; quote a text that begins with *"},
    {"illegal character found while scanning anchor", "a space or the line's end after &name",
     "something else; quote a text that begins with &"},
    {"the referenced anchor is not defined", "an anchor (&name) before its alias (*name)",
     "none of this name; quote a text that begins with *"},
    {"illegal character found while scanning tag", "a value",
     "a tag (!name), which is not supported; quote a text that begins with !"},
    {"tag handle with no suffix", "a value",
     "a tag (!name), which is not supported; quote a text that begins with !"},
    {kListAsKey, "a field's name", "a list or an object as a key"},
    {"end of verbatim tag", "a value",
     "a tag (!<name>), which is not supported; quote a text that begins with !"},
};

}  // namespace

namespace {

struct Bracket {
  char kind;  // [ or {
  int line;
};

// Returns the offset of the closing quote of the quoted text at `at`, or the end of `text`.
size_t closing_quote(std::string_view text, size_t at) {
  const char quote = text[at];
  for (++at; at < text.size(); ++at) {
    const bool is_quote = text[at] == quote;
    const bool is_escaped = is_quote && quote == '\'' && text.substr(at + 1, 1) == "'";
    if (is_quote && !is_escaped) break;
    if (is_escaped || (text[at] == '\\' && quote == '"')) ++at;
  }
  return std::min(at, text.size());
}

// Returns the lists and objects in brackets that are open at the end of `text`, the innermost last;
// or at the first place where more than `most` are open. Outside of brackets only the beginning of
// a value opens a bracket: in `a: b[` the bracket is an ordinary character.
std::vector<Bracket> open_at_the_end_of(std::string_view text, size_t most) {
  std::vector<Bracket> open;
  int line = 1;
  char before = '\n';  // the last character that is not a space
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool begins = std::string_view("\n:-,[{").find(before) != std::string_view::npos;
    if (c == '#' && (at == 0 || std::isspace(static_cast<unsigned char>(text[at - 1])) != 0)) {
      at = std::min(text.find('\n', at), text.size()) - 1;
      continue;
    }
    if ((c == '"' || c == '\'') && begins) {
      const size_t end = closing_quote(text, at);
      line += static_cast<int>(std::count(text.begin() + at, text.begin() + end, '\n'));
      at = end;
    } else if ((c == '[' || c == '{') && (begins || !open.empty())) {
      open.push_back({c, line});
      if (open.size() > most) break;
    } else if ((c == ']' || c == '}') && !open.empty()) {
      open.pop_back();
    }
    if (c == '\n') ++line;
    if (c == '\n' || std::isspace(static_cast<unsigned char>(c)) == 0) before = c;
  }
  return open;
}

std::string closing(const Bracket& bracket) {
  return fmt::format("the closing '{}' of the {} that begins on line {}",
                     bracket.kind == '[' ? ']' : '}', bracket.kind == '[' ? "list" : "object",
                     bracket.line);
}

std::string_view line_at(std::string_view text, size_t at) {
  const size_t end = std::min(text.find('\n', at), text.size());
  const size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return text.substr(begin, end - begin);
}

}  // namespace

Complaint in_plain_words(std::string_view message, std::string_view text, size_t at) {
  at = std::min(at, text.size());
  const std::string_view line = line_at(text, at);
  const std::string_view indentation = line.substr(0, line.find_first_not_of(" \t"));
  if (indentation.find('\t') != indentation.npos) return {"spaces as indentation", "a tab"};
  if (message == kListAsKey) at = text.size();  // yaml-cpp takes a list that is not closed for one
  if (message == kListAsKey || message.starts_with("illegal flow end") ||
      message.starts_with("end of map flow") || message.starts_with("end of sequence flow")) {
    if (const auto open = open_at_the_end_of(text.substr(0, at), text.size()); !open.empty()) {
      return {"',' or " + closing(open.back()),
              at < text.size() ? "neither before this place" : "the end of the text"};
    }
  }
  for (const Translation& entry : kTranslations) {
    if (message.starts_with(entry.message)) return {entry.expected, entry.found};
  }
  return {"YAML", "what its grammar has no place for (" + std::string(message) + ")"};
}

bool is_unclosed_quote(std::string_view text, size_t at) {
  const bool is_quoted = at < text.size() && (text[at] == '"' || text[at] == '\'');
  return is_quoted && closing_quote(text, at) == text.size();
}

int line_of_excess_bracket(std::string_view text, size_t most) {
  const std::vector<Bracket> open = open_at_the_end_of(text, most);
  return open.size() > most ? open.back().line : 0;
}

Malformed::Malformed(std::string where, std::string expected, std::string found)
    : Invalid(where + ": expected " + expected + ", found " + found),
      where_(std::move(where)),
      expected_(std::move(expected)),
      found_(std::move(found)) {}

}  // namespace muster
