#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "trainer/group/leader_address_file.h"
#include "trainer/loop/gpu_report.h"
#include "trainer/loop/roles/attend.h"
#include "trainer/loop/roles/final_checkpoint.h"
#include "trainer/loop/roles/graceful_leave.h"
#include "trainer/loop/roles/roles.h"
#include "trainer/loop/roles/strategy.h"
#include "trainer/loop/training_loop.h"

namespace muster::loop {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLook{2000};

enum class Verdict { finished, again, interrupted };

// Waits after all our steps are committed, because the steps may have to be repeated until rank 0
// has saved them. A collective needs us for its next generation even before that generation is
// open.
Verdict wait_for_the_end(const group::RendezvousClient& client,
                         const std::function<bool()>& finished_without_us, uint64_t generation,
                         bool collective, std::stop_token stop) {
  const auto decided = [&](const GroupView& view) {
    if (collective) return !collective::runs(view, generation);
    return view.phase() != GroupView::FORMING && ps::left_behind(view, generation);
  };
  for (;;) {
    const GroupView view = client.wait(decided, stop, kLook, group::RendezvousClient::kPatience);
    // A member that has been in no generation would try again for ever, so this comes first.
    if (view.phase() == GroupView::FINISHED || finished_without_us()) return Verdict::finished;
    if (decided(view)) return Verdict::again;
    if (stop.stop_requested()) return Verdict::interrupted;
  }
}

Recorder::Options quiet_recorder(const spec::TrainingSpec& spec) {
  Recorder::Options options;
  options.summary_every_steps = spec.summary_every_steps;
  options.loss = spec.model.loss;
  options.quiet = true;
  return options;
}

}  // namespace

int run_worker(const group::Membership& membership, Training training, std::stop_token stop) {
  const auto threads = ThreadChoice::from_environment(training.spec.threads);
  Assembly assembly = assemble_member(std::move(training), membership, threads);
  metrics::Reporter reporter(membership.http_address, membership.role_name, membership.index,
                             membership.restarts);
  report_gpus(reporter, compute::choose_devices(assembly.spec().device, assembly.spec().devices));
  FinalCheckpoint final(membership, assembly.training);
  if (final.is_there()) {
    log::info("training was finished before");
    return kSuccess;
  }
  const Hello hello = make_hello(membership, assembly);
  MemberReport report;
  group::RendezvousClient client(group::ways_to_rendezvous(membership),
                                 membership.rendezvous_address(), hello,
                                 [&](PeerMessage& message) { report.fill(message); });
  // Rank 0 may have left before we came, or before its last view reached us.
  const auto finished_without_us = [&] { return !client.connected() && final.is_there(); };
  const auto synchronizer = make_synchronizer(
      {membership, assembly, client, report, hello.incarnation(), finished_without_us});
  std::optional<GracefulLeave> leave;
  if (membership.elastic) stop = leave.emplace(client, report, hello.incarnation(), stop).token();
  Recorder recorder(quiet_recorder(assembly.spec()), reporter, nullptr);
  for (;;) {
    const Ending ending = train(*synchronizer, assembly, recorder, nullptr, nullptr, stop);
    if (ending == Ending::interrupted) return kTerminated;
    recorder.set_state("finishing");
    switch (wait_for_the_end(client, finished_without_us, synchronizer->generation(),
                             membership.collective(), stop)) {
      case Verdict::finished:
        recorder.set_state("done");
        return kSuccess;
      case Verdict::interrupted:
        return kTerminated;
      case Verdict::again:
        break;
    }
  }
}

}  // namespace muster::loop
