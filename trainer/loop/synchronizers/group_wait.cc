#include "trainer/loop/synchronizers/group_wait.h"

#include "common/error.h"
#include "common/threads/watched_work.h"
#include "trainer/loop/synchronizers/synchronizer.h"

namespace muster::loop {

std::optional<GroupView> GroupWait::wait(const Condition& asks, const std::stop_token& stop) {
  const auto ended = [](const GroupView& view) {
    return view.phase() == GroupView::FINISHED || view.phase() == GroupView::FAILED;
  };
  const auto news = [&](const GroupView& view) { return ended(view) || asks(view); };
  for (;;) {
    finished_ = setup_.finished_without_us();
    if (finished_) return std::nullopt;
    const GroupView view = client_.wait(news, stop, kGlance, setup_.patience);
    if (setup_.rethrow_failure) setup_.rethrow_failure();
    if (stop.stop_requested()) return std::nullopt;
    if (view.phase() == GroupView::FAILED)
      throw Invalid("the group has failed: " + view.message(), static_cast<int>(view.exit_code()));
    finished_ = view.phase() == GroupView::FINISHED;
    if (finished_) return std::nullopt;
    if (asks(view)) return view;
  }
}

bool GroupWait::is_over(const Condition& ends) const {
  WatchedWork::beat();
  return ends(client_.require_view(setup_.patience)) || setup_.finished_without_us();
}

}  // namespace muster::loop
