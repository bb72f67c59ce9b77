#include "common/variables.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "common/system/file.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

// The sources that name each variable, relative to the repository.
std::map<std::string, std::vector<std::string>> sources_by_variable() {
  std::map<std::string, std::vector<std::string>> result;
  const fs::path root = MUSTER_SOURCE_DIR;
  const std::regex literal("\"(TF_CONFIG|MUSTER_[A-Z_]*[A-Z])\"");
  for (const char* folder : {"common", "operator", "trainer"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h") continue;
      if (entry.path().filename() == "variables.cc") continue;
      const std::string text = read_file(entry.path());
      for (std::sregex_iterator at(text.begin(), text.end(), literal), end; at != end; ++at)
        result[(*at)[1]].push_back(fs::relative(entry.path(), root));
    }
  }
  return result;
}

// Returns the folders in which the code of a setter stands.
std::vector<std::string> folders_of(Setter setter) {
  switch (setter) {
    case Setter::operators:
      return {"operator/plan/", "operator/kube/pods/"};
    case Setter::kubernetes:
      return {"operator/kube/pods/"};
    case Setter::run:
      return {"operator/local/"};
    case Setter::supervisor:
      return {"trainer/supervise/"};
    case Setter::user:
    case Setter::starter:
      return {};
  }
  return {};
}

bool is_in(const std::vector<std::string>& sources, const std::string& folder) {
  return std::ranges::any_of(sources,
                             [&](const std::string& path) { return path.starts_with(folder); });
}

TEST(Variables, AreAllListed) {
  std::set<std::string> unknown;
  for (const auto& [name, sources] : sources_by_variable()) unknown.insert(name);
  for (const Variable& variable : variables()) unknown.erase(std::string(variable.name));
  // MUSTER_<ROLE>_HOSTS is put together.
  EXPECT_THAT(unknown, IsEmpty());
}

// A variable that somebody reads and nobody sets looks like a setting, and is none.
TEST(Variables, AreSetByTheirSettersAndReadBySomebody) {
  const auto sources = sources_by_variable();
  for (const Variable& variable : variables()) {
    const std::string name(variable.name);
    if (name.ends_with("_HOSTS")) continue;  // for scripts; put together of a role's name
    ASSERT_TRUE(sources.contains(name)) << name;
    const std::vector<std::string> folders = folders_of(variable.setter);
    EXPECT_TRUE(folders.empty() || std::ranges::any_of(folders,
                                                       [&](const std::string& folder) {
                                                         return is_in(sources.at(name), folder);
                                                       }))
        << name << " is not set where its setter stands";
    const bool is_for_scripts = name == "MUSTER_NAMESPACE";
    EXPECT_TRUE(is_for_scripts || is_in(sources.at(name), "trainer/") ||
                is_in(sources.at(name), "common/") || is_in(sources.at(name), "operator/cmd/"))
        << name << " is read by nobody";
  }
}

}  // namespace
}  // namespace muster
