#include "common/job/checkpoint_request.h"

#include "common/text/shorten.h"

namespace muster {

std::string counted_request(std::string text) {
  if (text.size() > kLongestRequest) text.resize(character_border(text, kLongestRequest));
  return text;
}

}  // namespace muster
