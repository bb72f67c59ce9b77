#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/documents/document.h"

namespace muster {

// Returns the documents of a text as `kubectl apply -f` reads them: the parts between lines of
// `---`, without those that are empty, and the items of a List in its place. A text with nothing in
// it is one document, null. Throws Malformed, as Document::parse does, and for more than 1,000
// documents.
std::vector<Document> parse_documents(std::string_view text, const std::string& source);

}  // namespace muster
