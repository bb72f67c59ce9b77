#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trainer/group/membership.h"
#include "trainer/group/rendezvous_client.h"

namespace muster::group {

// Rank 0's address by IP, in a file on the job's storage for as long as rank 0 listens. Its name is
// in DNS only about a second after its pod has begun, and a cache answers an earlier query with
// "unknown" for up to half a minute; and outside Kubernetes it may have moved to another host since
// its peers began. If rank 0 is not told its IP (MUSTER_POD_IP), no file is written. If the storage
// cannot be written, peers have only TF_CONFIG.
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

  // Returns the entry that a job's rank 0 has written, if it can be read. That process may have
  // gone or been killed.
  static std::optional<Entry> read(const std::filesystem::path& storage,
                                   const std::string& job_uid);

 private:
  const std::filesystem::path storage_;
  const std::string job_uid_;
  std::optional<Entry> written_;
};

// Returns the ways to the rendezvous: first by its name; then by each new entry of its address
// file, once, and again if that way reached it; else by the name.
RendezvousClient::Ways ways_to_rendezvous(const Membership& membership);

}  // namespace muster::group
