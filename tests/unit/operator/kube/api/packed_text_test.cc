#include "operator/kube/api/packed_text.h"

#include <gtest/gtest.h>

#include "common/random.h"

namespace muster::kube {
namespace {

TEST(PackedTextTest, GivesBackWhatItWasGiven) {
  std::string noise;
  while (noise.size() < 100'000) noise += random_digits();
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("a\0b", 3), std::string(1 << 20, 'x'), noise})
    EXPECT_TRUE(PackedText(text).text() == text) << text.substr(0, 20);
  EXPECT_EQ(PackedText().text(), "");
}

TEST(PackedTextTest, TakesLittleMemoryForAJob) {
  std::string job =
      R"({"apiVersion":"muster.dev/v1alpha1","kind":"TrainingJob","status":{"conditions":[)";
  for (const char* type : {"Accepted", "Running", "SuccessCriteriaMet", "Succeeded", "Finished"})
    job += R"({"lastTransitionTime":"2026-11-26T21:06:57.500Z","message":"the job can be run",)"
           R"("reason":"Valid","status":"True","type":")" +
           std::string(type) + "\"},";
  EXPECT_LT(PackedText(job).size(), job.size() / 5);
  EXPECT_EQ(PackedText(job).text(), job);
}

}  // namespace
}  // namespace muster::kube
