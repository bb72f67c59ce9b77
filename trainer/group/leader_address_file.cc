#include "trainer/group/leader_address_file.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "common/documents/json.h"
#include "common/program/log.h"
#include "common/random.h"
#include "common/system/file.h"
#include "trainer/group/address.h"
#include "trainer/group/grpc_server.h"

namespace muster::group {

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kFile[] = "rendezvous.json";
constexpr size_t kMostBytes = 4096;
// The time between queries to DNS: gRPC itself would ask ever less often, up to every two minutes.
constexpr std::chrono::seconds kAskAgain{1};

class Ways {
 public:
  explicit Ways(const Membership& membership)
      : storage_(membership.storage),
        job_uid_(membership.uid),
        name_(membership.rendezvous_address()),
        identity_(membership.identity) {}

  RendezvousClient::Way next(bool reached) {
    if (!by_name_) return take_name();
    const auto entry = LeaderAddressFile::read(storage_, job_uid_);
    const bool again = written_ && reached;
    if (!entry || (entry == tried_ && !again)) return take_name();
    tried_ = entry;
    written_ = true;
    return {make_channel(entry->address, identity_), /*doubtful=*/true};
  }

 private:
  RendezvousClient::Way take_name() {
    written_ = false;
    const auto now = Clock::now();
    if (!by_name_) {
      by_name_ = make_channel(name_, identity_);
      asked_ = now;
    } else if (now - asked_ >= kAskAgain) {
      grpc::experimental::ChannelResetConnectionBackoff(by_name_.get());
      asked_ = now;
    }
    return {by_name_};
  }

  const std::filesystem::path storage_;
  const std::string job_uid_;
  const std::string name_;
  const Identity identity_;
  std::shared_ptr<grpc::Channel> by_name_;
  Clock::time_point asked_;
  std::optional<LeaderAddressFile::Entry> tried_;
  bool written_ = false;  // whether the last way came from the address file
};

}  // namespace

LeaderAddressFile::LeaderAddressFile(const Membership& membership)
    : storage_(membership.storage), job_uid_(membership.uid) {
  if (membership.pod_ip.empty()) return;
  written_ = Entry{membership.reachable_address(), std::to_string(random_number())};
  const Json entry = {
      {"jobUid", job_uid_}, {"address", written_->address}, {"process", written_->process}};
  try {
    write_file_atomically(storage_ / kFile, entry.dump() + "\n");
  } catch (const WriteError& error) {
    log::info(std::string("peers find this rendezvous by TF_CONFIG alone: ") + error.what());
  }
}

LeaderAddressFile::~LeaderAddressFile() {
  if (!written_ || read(storage_, job_uid_) != written_) return;
  std::error_code ignored;
  std::filesystem::remove(storage_ / kFile, ignored);
}

std::optional<LeaderAddressFile::Entry> LeaderAddressFile::read(
    const std::filesystem::path& storage, const std::string& job_uid) {
  const std::filesystem::path path = storage / kFile;
  look_anew(storage);
  try {
    const Json entry = parse_or_null(read_file(path, kMostBytes));
    if (!entry.is_object() || string_or(entry, "jobUid", "") != job_uid) return std::nullopt;
    Entry result{string_or(entry, "address", ""), string_or(entry, "process", "")};
    if (!is_address(result.address)) return std::nullopt;
    return result;
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

RendezvousClient::Ways ways_to_rendezvous(const Membership& membership) {
  return [ways = std::make_shared<Ways>(membership)](bool reached) { return ways->next(reached); };
}

}  // namespace muster::group
