#include "operator/kube/cache/reflector.h"

#include <malloc.h>

#include <algorithm>

#include "common/error.h"
#include "common/random.h"
#include "common/threads/pause.h"
#include "operator/kube/api/api_error.h"

namespace muster::kube {

namespace {

using std::chrono::milliseconds;

std::string describe(const ApiStatus& status) {
  std::string text = status.code == 0 ? "" : std::to_string(status.code) + " ";
  if (!status.reason.empty()) text += status.reason + ": ";
  return text + status.message;
}

ApiStatus refusal(const StreamEnd& end) {
  Response response;
  response.status = end.status;
  response.body = end.body;
  response.retry_after = end.retry_after;
  return status_of(response);
}

// Whether the answer may be too large: the server began it and did not end it, or could not build
// it.
bool may_be_too_much(const Response& response) {
  if (response.status == 0)
    return response.phase == Phase::answering || response.phase == Phase::reading;
  return response.status == 413 || response.status == 500 || response.status == 504;
}

// Whether the server has forgotten the version to continue from, or never had it.
bool is_expired(const ApiStatus& status) {
  return status.code == 410 || status.reason == "Expired" || status.reason == "Gone";
}

}  // namespace

Reflector::Reflector(Transport& transport, Mirror& mirror, Settings settings, Report report)
    : Reflector(transport, mirror, std::move(settings), std::move(report), pause_for,
                random_number) {}

Reflector::Reflector(Transport& transport, Mirror& mirror, Settings settings, Report report,
                     Wait wait, std::function<uint64_t()> random)
    : transport_(transport),
      mirror_(mirror),
      settings_(std::move(settings)),
      report_(std::move(report)),
      wait_(std::move(wait)),
      random_(std::move(random)),
      page_(settings_.page) {}

void Reflector::run(const std::stop_token& stop) {
  while (!stop.stop_requested() && !transport_.down().stop_requested()) {
    const Outcome outcome = resource_version_.empty() ? list(stop) : watch(stop);
    if (stop.stop_requested() || transport_.down().stop_requested()) return;
    if (outcome.relist) resource_version_.clear();
    if (outcome.progress) failures_ = 0;
    milliseconds pause(0);
    if (outcome.pause) pause = pause_after(outcome);
    if (!outcome.trouble.empty()) report_(outcome.trouble, pause);
    if (outcome.pause && !wait_(pause, stop)) return;
  }
}

bool Reflector::wait_synced(const std::stop_token& stop) const {
  while (!synced_ && pause_for(milliseconds(10), stop)) {
  }
  return synced_;
}

// Returns a pause that doubles with each failure in a row, plus a random part of up to half of it,
// so that the clients cut off by a restart of the server do not all come back at once.
milliseconds Reflector::pause_after(const Outcome& outcome) {
  milliseconds pause = settings_.first_pause;
  for (int i = 0; i < failures_ && pause < settings_.longest_pause; ++i) pause *= 2;
  ++failures_;
  pause = std::min(pause, settings_.longest_pause);
  if (outcome.retry_after) {
    const milliseconds asked_for =
        std::min<milliseconds>(*outcome.retry_after, settings_.longest_retry_after);
    pause = std::max(pause, asked_for);
  }
  return pause + milliseconds(random_() % (pause.count() / 2 + 1));
}

Request Reflector::request() const {
  Request request;
  request.path = settings_.resource.path(settings_.name_space);
  if (!settings_.label_selector.empty()) {
    request.query.emplace_back("labelSelector", settings_.label_selector);
  }
  return request;
}

Reflector::Outcome Reflector::list(const std::stop_token& stop) {
  const std::string what = "list of " + settings_.resource.plural + ": ";
  mirror_.begin_list();
  Mirror::Page page;
  int size = std::min(settings_.first_page, page_);
  do {
    Request request = this->request();
    if (!whole_list_) request.query.emplace_back("limit", std::to_string(size));
    if (!page.next.empty()) request.query.emplace_back("continue", page.next);
    const Response response = transport_.send(request);
    if (stop.stop_requested()) return {};
    if (response.status != 200) return list_failure(what, response, page.next.empty());
    try {
      page = mirror_.add_page(response.body);
    } catch (const Unavailable& error) {
      ask_for_less();
      return failure(what + error.what());
    }
    size = next_page(size, response.body.size());
    for (const std::string& unread : page.unread) report_(what + unread, milliseconds(0));
  } while (!page.next.empty());
  mirror_.end_list();
  malloc_trim(0);  // the texts were many times larger than the objects kept
  whole_list_ = false;
  page_ = std::min(2 * page_, settings_.page);
  resource_version_ = page.resource_version;
  synced_ = true;
  Outcome outcome;
  outcome.progress = true;
  return outcome;
}

// Returns how many objects to ask for after a page of `page` objects that took so many bytes.
int Reflector::next_page(int page, size_t bytes) const {
  const size_t of_an_object = bytes / static_cast<size_t>(page) + 1;
  const int most = std::min(2 * page, page_);
  return std::clamp(static_cast<int>(settings_.page_bytes / of_an_object), 1, most);
}

Reflector::Outcome Reflector::list_failure(const std::string& what, const Response& response,
                                           bool first_page) {
  const ApiStatus status = status_of(response);
  // Pages that expire while they are read would expire again, so the list is read in one answer.
  if (is_expired(status) && !first_page) whole_list_ = true;
  if (may_be_too_much(response)) ask_for_less();
  return failure(what + describe(status), status.retry_after);
}

void Reflector::ask_for_less() {
  if (!whole_list_) page_ = std::max(1, page_ / 2);
  whole_list_ = false;
}

Request Reflector::watch_request() const {
  const auto spread = (settings_.longest_watch - settings_.shortest_watch).count() + 1;
  const auto time = settings_.shortest_watch.count() +
                    static_cast<int64_t>(random_() % static_cast<uint64_t>(spread));
  Request request = this->request();
  request.query.emplace_back("watch", "true");
  request.query.emplace_back("allowWatchBookmarks", "true");
  request.query.emplace_back("resourceVersion", resource_version_);
  request.query.emplace_back("timeoutSeconds", std::to_string(time));
  return request;
}

Reflector::Outcome Reflector::watch(const std::stop_token& stop) {
  const std::string what = "watch of " + settings_.resource.plural + ": ";
  bool came = false;
  std::optional<ApiStatus> error;
  const auto began = std::chrono::steady_clock::now();
  StreamEnd end;
  try {
    end = transport_.stream(
        watch_request(),
        [&](std::string_view line) {
          if (error) return;
          const Mirror::Seen seen = mirror_.apply(line);
          if (seen.type == EventType::error) {
            error = seen.status;
            return;
          }
          came = true;
          resource_version_ = seen.resource_version;
          if (!seen.unread.empty()) report_(what + seen.unread, milliseconds(0));
        },
        stop);
  } catch (const Unavailable& unreadable) {
    // The content of this event is lost unless the whole list is asked for again.
    return relist(failure(what + unreadable.what()), came);
  }
  if (!error && end.reason == StreamEnd::Reason::refused) error = refusal(end);
  if (error) {
    Outcome outcome = failure(what + describe(*error), error->retry_after);
    // A server that says that it has forgotten the version works again: earlier failures no longer
    // count.
    return is_expired(*error) ? relist(outcome, true) : progress(outcome, came);
  }
  if (end.reason == StreamEnd::Reason::closed) {
    // This is a normal end, but a server that closes at once without an event must not be asked all
    // the time.
    const bool lasted = std::chrono::steady_clock::now() - began > std::chrono::seconds(1);
    Outcome outcome;
    outcome.progress = came || lasted;
    outcome.pause = !outcome.progress;
    return outcome;
  }
  return progress(failure(what + end.error), came);
}

Reflector::Outcome Reflector::failure(std::string trouble,
                                      std::optional<std::chrono::seconds> retry_after) {
  Outcome outcome;
  outcome.pause = true;
  outcome.trouble = std::move(trouble);
  outcome.retry_after = retry_after;
  return outcome;
}

Reflector::Outcome Reflector::progress(Outcome outcome, bool came) {
  outcome.progress = came;
  return outcome;
}

Reflector::Outcome Reflector::relist(Outcome outcome, bool came) {
  outcome.relist = true;
  return progress(std::move(outcome), came);
}

}  // namespace muster::kube
