#include "common/malformed_yaml.h"

#include "common/document.h"

namespace muster {

namespace {

struct Translation {
  std::string_view message;  // as yaml-cpp begins it
  const char* expected;
  const char* found;
};

// What people meet first. The parser tells what it met, not what was meant: so does this.
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
    {"end of map flow not found", "',' or the closing '}' of an object", "neither"},
    {"end of sequence flow not found", "',' or the closing ']' of a list", "neither"},
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
    {"alias", "a value",
     "an alias (*name), which is not supported; quote a text that begins with *"},
    {"anchor", "a value",
     "an anchor (&name), which is not supported; quote a text that begins with &"},
    {"illegal character found while scanning alias", "a value",
     "an alias (*name), which is not supported; quote a text that begins with *"},
    {"illegal character found while scanning anchor", "a value",
     "an anchor (&name), which is not supported; quote a text that begins with &"},
    {"the referenced anchor is not defined", "a value",
     "an alias (*name), which is not supported; quote a text that begins with *"},
    {"illegal character found while scanning tag", "a value",
     "a tag (!name), which is not supported; quote a text that begins with !"},
    {"tag handle with no suffix", "a value",
     "a tag (!name), which is not supported; quote a text that begins with !"},
    {"end of verbatim tag", "a value",
     "a tag (!<name>), which is not supported; quote a text that begins with !"},
};

}  // namespace

Complaint in_plain_words(std::string_view message, std::string_view line) {
  const std::string_view indentation = line.substr(0, line.find_first_not_of(" \t"));
  if (indentation.find('\t') != indentation.npos) return {"spaces as indentation", "a tab"};
  for (const Translation& entry : kTranslations) {
    if (message.starts_with(entry.message)) return {entry.expected, entry.found};
  }
  return {"YAML", "what its grammar has no place for (" + std::string(message) + ")"};
}

Malformed::Malformed(std::string where, std::string expected, std::string found)
    : Invalid(where + ": expected " + expected + ", found " + found),
      where_(std::move(where)),
      expected_(std::move(expected)),
      found_(std::move(found)) {}

}  // namespace muster
