#include "common/exit_code.h"

namespace muster {

namespace {

struct Described {
  int code;
  bool permanent;
  const char* text;
};

constexpr Described kCodes[] = {
    {kSuccess, false, "finished"},
    {1, false, "failed"},
    {2, false, "failed"},
    {kUsage, true, "wrong command line"},
    {kBadInput, true, "malformed manifest, data or checkpoint"},
    {kUnavailable, false, "a peer, port or resource did not answer in time"},
    {kInternal, false, "internal error"},
    {kFaulty, false, "a GPU, or a machine's memory or processor, is faulty"},
    {kMiscomputes, true, "its kernels compute wrong: a compiler or processor is at fault"},
    {kCannotWrite, false, "a directory cannot be written or a disk is full"},
    {kHung, false, "its work gave no sign of life for too long"},
    {kProtocol, true, "a peer of another version, model or job, or its folder"},
    {kBadConfig, true, "bad TF_CONFIG, MUSTER_* or training.yaml, or a missing GPU"},
    {kDiverged, true, "the loss is not finite"},
    {kNotEvaluated, true, "trained, but not evaluated on all its data"},
    {kDeadline, true, "ran for longer than activeDeadlineSeconds"},
    {126, false, "the command cannot be executed"},
    {127, false, "the command was not found"},
    {129, false, "terminated (SIGHUP)"},
    {130, false, "terminated (SIGINT)"},
    {131, false, "terminated (SIGQUIT)"},
    {132, false, "terminated (SIGILL)"},
    {133, false, "terminated (SIGTRAP)"},
    {134, false, "terminated (SIGABRT)"},
    {135, false, "terminated (SIGBUS)"},
    {136, false, "terminated (SIGFPE)"},
    {137, false, "terminated (SIGKILL)"},
    {138, false, "terminated (SIGUSR1)"},
    {139, false, "terminated (SIGSEGV)"},
    {140, false, "terminated (SIGUSR2)"},
    {141, false, "terminated (SIGPIPE)"},
    {142, false, "terminated (SIGALRM)"},
    {kTerminated, false, "terminated (SIGTERM)"},
    {152, false, "terminated (SIGXCPU)"},
    {153, false, "terminated (SIGXFSZ): a file grew beyond ulimit -f"},
    {159, false, "terminated (SIGSYS)"},
};

const Described* find(int exit_code) {
  for (const Described& entry : kCodes) {
    if (entry.code == exit_code) return &entry;
  }
  return nullptr;
}

}  // namespace

bool is_permanent(int exit_code) {
  const Described* entry = find(exit_code);
  return entry != nullptr && entry->permanent;
}

const char* describe_exit_code(int exit_code) {
  if (const Described* entry = find(exit_code)) return entry->text;
  return exit_code > 128 && exit_code <= 192 ? "terminated by a signal" : "failed";
}

}  // namespace muster
