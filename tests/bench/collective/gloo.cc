#include "tests/bench/collective/gloo.h"

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "tests/bench/collective/all_reduce.h"
#include "tests/bench/collective/twins.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::bench {

namespace {

using Context = std::shared_ptr<gloo::rendezvous::Context>;
// What adds up the buffer in place.
using MakeCall = std::function<std::function<void()>(const Context&, std::vector<float>&)>;

double seconds_of(size_t floats, const MakeCall& make_call) {
  const test::TemporaryFolder folder;
  return in_twins([&](int twin, Meeting& meeting) {
    gloo::rendezvous::FileStore store(folder.path());
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    const auto context = std::make_shared<gloo::rendezvous::Context>(twin, Meeting::kTwins);
    context->connectFullMesh(store, device);
    std::vector<float> buffer(floats);
    const auto call = make_call(context, buffer);
    const double seconds =
        median_seconds(twin, meeting, repeats_of(floats), {[&] { fill(buffer, twin); }, call});
    check(buffer);
    meeting.barrier();  // before either hangs up
    return seconds;
  });
}

}  // namespace

double gloo_ring_seconds(size_t floats) {
  return seconds_of(floats, [](const Context& context, std::vector<float>& buffer) {
    return [&context, &buffer] {
      using Sum = void (*)(void*, const void*, const void*, size_t);
      gloo::AllreduceOptions options(context);
      options.setOutput(buffer.data(), buffer.size());
      options.setReduceFunction(static_cast<Sum>(&gloo::sum<float>));
      options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
      gloo::allreduce(options);
    };
  });
}

double gloo_halving_doubling_seconds(size_t floats) {
  return seconds_of(floats, [](const Context& context, std::vector<float>& buffer) {
    const auto algorithm = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(
        context, std::vector<float*>{buffer.data()}, static_cast<int>(buffer.size()));
    return [algorithm] { algorithm->run(); };
  });
}

}  // namespace muster::bench
