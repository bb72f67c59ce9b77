#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/error.h"
#include "common/job/results.h"
#include "tests/fuzz/fuzz_folder.h"
#include "trainer/folder/owner.h"
#include "trainer/group/leader_address_file.h"

using namespace muster;

// The small JSON files of a job's folder, which others may have written or damaged.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const FuzzFolder folder;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  folder.write("owner.json", text);
  folder.write("rendezvous.json", text);
  folder.write("result.json", text);
  std::filesystem::create_directory(folder.path() / "evaluations");
  folder.write("evaluations/12.json", text);
  try {
    if (const auto owner = folder::read_owner(folder.path())) owner->name();
  } catch (const Invalid&) {
  } catch (const Unavailable&) {
  }
  group::LeaderAddressFile::read(folder.path(), "uid");
  read_results(folder.path());
  read_final_evaluation(folder.path());
  return 0;
}
