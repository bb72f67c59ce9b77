#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trainer/group/membership.h"
#include "trainer/group/rendezvous_client.h"

namespace muster::group {

// Rank 0's IP address, in a file on the job's storage as long as rank 0 listens. The file helps
// because rank 0's name is in DNS only about a second after its pod has begun, and a cache answers
// "unknown" for up to half a minute after an earlier query; and outside Kubernetes rank 0 may have
// moved to another host since its peers began. If rank 0 is not told its IP (MUSTER_POD_IP), no
// file is written. If the storage cannot be written, peers have only TF_CONFIG.
class LeaderAddressFile {
 public:
  struct Entry {
    std::string address;  // "IP:port"
    std::string process;  // distinguishes processes with the same address
    bool operator==(const Entry&) const = default;
  };

  explicit LeaderAddressFile(const Membership& membership);
  ~LeaderAddressFile();
  LeaderAddressFile(const LeaderAddressFile&) = delete;
  LeaderAddressFile& operator=(const LeaderAddressFile&) = delete;

  // Returns the entry that a job's rank 0 has written, if it can be read. The process that wrote it
  // may have ended.
  static std::optional<Entry> read(const std::filesystem::path& storage,
                                   const std::string& job_uid);

 private:
  const std::filesystem::path storage_;
  const std::string job_uid_;
  std::optional<Entry> written_;
};

// Returns the ways to the rendezvous: first by its name; then by each new entry of the address
// file, once, and again if that way reached the rendezvous; otherwise by the name.
RendezvousClient::Ways ways_to_rendezvous(const Membership& membership);

}  // namespace muster::group
