#pragma once

namespace muster {

// The exit codes of Muster's processes; for users docs/reference/exit-codes.md says them. The
// numbers follow sysexits.h, where it has the case, and timeout(1). A restart does not help after a
// `permanent` code: with the operator's default failure policy such a code of muster-trainer fails
// the job.
enum ExitCode : int {
  kSuccess = 0,
  kUsage = 64,        // permanent: the command line is wrong
  kBadInput = 65,     // permanent: a manifest, data file or checkpoint is malformed
  kUnavailable = 69,  // retryable: a peer, port or resource did not answer in time
  kInternal = 70,     // retryable: a broken invariant, a bug in Muster
  kFaulty = 71,       // retryable: a GPU, memory or processor is faulty; try another machine
  kMiscomputes =
      72,  // permanent: kernels compute wrong results: a compiler or processor is at fault
  kCannotWrite = 73,   // retryable: a directory cannot be written or a disk is full
  kHung = 75,          // retryable: its work gave no sign of life for too long
  kProtocol = 76,      // permanent: a peer of another version, model or job, or its folder
  kBadConfig = 78,     // permanent: bad TF_CONFIG, MUSTER_* or training.yaml, or a missing GPU
  kDiverged = 90,      // permanent: the loss is not finite
  kNotEvaluated = 91,  // permanent: `muster run`: trained, but not evaluated on all its data
  kDeadline = 124,     // permanent: a job ran for longer than its activeDeadlineSeconds
  kTerminated = 143,   // retryable: asked to leave by SIGTERM or SIGINT, state saved
};

// True for the codes above that are marked permanent.
bool is_permanent(int exit_code);

// Returns the code's meaning in a few words, for people: "terminated (SIGKILL)" for 128 + signal,
// and so on.
const char* describe_exit_code(int exit_code);

}  // namespace muster
