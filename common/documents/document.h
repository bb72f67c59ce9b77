#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"

// Compiled once, in json.cc, instead of in each of the two hundred files that use it.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace muster {

using Json = nlohmann::ordered_json;

// The error for a text that is no document; what() is "job.yaml:3:7: expected ..., found ...".
class Malformed : public Invalid {
 public:
  Malformed(std::string where, std::string expected, std::string found);
  const std::string& where() const { return where_; }  // "job.yaml:3:7"
  const std::string& expected() const { return expected_; }
  const std::string& found() const { return found_; }

 private:
  std::string where_;
  std::string expected_;
  std::string found_;
};

// A YAML (or JSON) text as a JSON value that remembers the line of each part. Scalars are typed as
// kubectl types them (plain_scalar() in scalar.h): 12 is an integer, "12" a string, null/~ null,
// true/yes/on a boolean. 1e999 stays text, which no numeric field accepts; .inf and .nan are
// refused. An alias (*name) is a copy of its anchor's value (&name); the field << of an object
// merges another object, or a list of objects, into it, and must not bring fields that stand before
// it. Limits, so that hostile input stays cheap: UTF-8 text of 4 MiB, 64 levels, 100,000 values,
// keys of 1,024 bytes; each anchor and each alias counts as if its value were written out once
// more; tags (except !!str) are refused.
class Document {
 public:
  // `source` names the text in errors ("job.yaml"). Throws Malformed on malformed YAML, duplicate
  // keys, several documents in one text, or a limit passed. An empty text is null. `lines_before`
  // is the number of lines before the text, if it is a later part of the source.
  static Document parse(std::string_view text, std::string source, int lines_before = 0);
  static Document load(const std::filesystem::path& path);
  // Makes a document without lines from a value that does not come from a text.
  static Document of(Json value, std::string source);
  // A path of a value, and the path of what it was made from.
  struct Renamed {
    std::string path, original;
  };
  // Makes a document from a value that was made from `original`. The document has the source and
  // the lines of `original`. `renamed` lists the paths that differ in the original; all other paths
  // are the same there.
  static Document of(Json value, const Document& original, std::vector<Renamed> renamed);

  // Returns the value at `path` as a separate document, with its lines. Precondition: the value
  // exists.
  Document part(std::string_view path) const;

  const Json& value() const { return value_; }
  Json& value() { return value_; }

  // Name of the text, as errors give it.
  const std::string& source() const { return source_; }

  // Returns "job.yaml:12" for a dotted path such as "spec.training.layers[2].dense.units": the
  // value's own line, or the line of the nearest parent that has one; "job.yaml (--set)" for a
  // value from set().
  std::string locate(std::string_view path) const;

  // The line that locate() names, counted from 1; 0 if it names none.
  int line(std::string_view path) const;

  // Returns the path, in the text, of the value at `path`. It differs from `path` if the document
  // was made from an original that has another path there; but not for a value from set().
  std::string path_in_text(std::string_view path) const;

  // The value at `path`, or nullptr.
  const Json* find(std::string_view path) const;
  Json* find(std::string_view path);

  // Sets a value by dotted path, making objects on the way, as `--set spec.training.epochs=1` does;
  // `text` is read as a YAML scalar or flow value. An index may name an entry of a list or the
  // place after its last one. Throws Invalid if the path is malformed or crosses a scalar.
  void set(std::string_view path, std::string_view text);

 private:
  // The lines of a value and of its parts, by key ("[2]" for an entry of a list). Within the copy
  // that an alias makes, they are the lines of the anchor's value.
  struct Lines {
    std::string key;
    int line = 0;  // 1-based; 0: not from the text
    std::vector<Lines> children;
    const Lines* find(std::string_view child) const;
  };
  class Builder;
  std::string original_path(std::string_view path) const;
  const Lines& nearest_lines(std::string_view path) const;

  std::string source_;
  Json value_;
  Lines lines_;
  std::vector<Renamed> renamed_;
};

// Paths as Document and schemas write them: child_path("a.b", "c") is "a.b.c", child_path("", "a")
// is "a", child_path("a", 2) is "a[2]". A key that has dots, brackets or quotes is written
// a["b.c"], with \ before its own quotes and backslashes.
std::string child_path(const std::string& path, const std::string& key);
std::string child_path(const std::string& path, size_t index);

// The steps of a path: "a[2].b" is {"a", "[2]", "b"}. Throws Invalid if it is malformed.
std::vector<std::string> split_path(std::string_view path);

}  // namespace muster
