#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trainer/group/membership.h"
#include "trainer/group/rendezvous_client.h"

namespace muster::group {

// Rank 0's address by IP, on the job's storage for as long as it listens. Its name is in DNS only
// about a second after its pod has begun, and who asks before that is told so by a cache for up to
// half a minute. Where rank 0 knows no IP but what TF_CONFIG says, nothing is left. A storage that
// cannot be written leaves peers with DNS.
class LeaderAddressFile {
 public:
  struct Entry {
    std::string address;  // "IP:port"
    std::string process;  // tells two processes at one address apart
    bool operator==(const Entry&) const = default;
  };

  explicit LeaderAddressFile(const Membership& membership);
  ~LeaderAddressFile();
  LeaderAddressFile(const LeaderAddressFile&) = delete;
  LeaderAddressFile& operator=(const LeaderAddressFile&) = delete;

  // What a job's rank 0 has left, if it can be read; it may be gone, or have been killed.
  static std::optional<Entry> read(const std::filesystem::path& storage,
                                   const std::string& job_uid);

 private:
  const std::filesystem::path storage_;
  const std::string job_uid_;
  std::optional<Entry> written_;
};

// First by the rendezvous' name; then by what its address file says, once, and again where that led
// there; else by the name.
RendezvousClient::Ways ways_to_rendezvous(const Membership& membership);

}  // namespace muster::group
