#pragma once

#include <grpcpp/support/status.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tests/service/simulator/timeline.hpp"

namespace quasi::sim {

/// True as long as the process that holds the other end of the pointer lives.
using Alive = std::weak_ptr<bool>;

/// A call that may be ended by its caller.
struct OpenCall {
  bool is_over = false;
};

/// Tells the server whether the caller still waits for its answer, as far as the server can know.
using Awaited = std::function<bool()>;

/// Carries calls to the server. Each message takes a time of its own, so messages overtake each
/// other. While the network is not calm, messages are lost or arrive twice, and hosts are cut off
/// or have a slow connection.
class Network {
 public:
  Network(Timeline& timeline, Dice& dice) : timeline_(timeline), dice_(dice) {}

  template <class Response>
  using Answer = std::function<void(const grpc::Status&, const Response&)>;

  /// Calls the server.
  /// @param limit_ms  time after which the caller gives up
  /// @param serve     serve(back, awaited) runs at the server and answers once, now or later
  /// @param then      gets the answer, or UNAVAILABLE; exactly once if the caller lives
  template <class Response, class Serve>
  std::shared_ptr<OpenCall> call(const std::string& host, const Alive& alive, std::int64_t limit_ms,
                                 Serve serve, Answer<Response> then) {
    auto open = std::make_shared<OpenCall>();
    const auto end = [open, alive, then](const grpc::Status& status, const Response& response) {
      if (std::exchange(open->is_over, true) || !alive.lock()) return;
      then(status, response);
    };
    const auto back = [this, host, end](const grpc::Status& status, const Response& response) {
      if (is_lost(host)) return;
      timeline_.plan_event(delay(host), [end, status, response] { end(status, response); });
    };
    // A machine that loses its power tells the server nothing, and messages of a host that is cut
    // off do not arrive.
    const bool is_silent = !is_calm_ && dice_.one_in(4);
    const Awaited awaited = [this, host, open, alive, is_silent] {
      return is_silent || is_cut(host) || (!open->is_over && alive.lock() != nullptr);
    };
    const int copies = !is_calm_ && dice_.one_in(40) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      if (is_lost(host)) continue;
      timeline_.plan_event(delay(host), [this, host, serve, back, awaited] {
        if (!is_cut(host)) serve(back, awaited);
      });
    }
    timeline_.plan_timeout(limit_ms, [end] {
      end({grpc::StatusCode::UNAVAILABLE, "no answer from the server"}, Response());
    });
    return open;
  }

  /// Cuts a host off for a while.
  void cut(const std::string& host, std::int64_t for_ms) {
    timeline_.record("the network of " + host + " is cut for " + std::to_string(for_ms) + " ms");
    cut_until_[host] = timeline_.now() + for_ms;
  }
  bool is_cut(const std::string& host) const { return lasts(cut_until_, host); }
  /// Lets half of the messages of a host arrive late for a while, some of them after the lease of
  /// their attempt has expired.
  void slow_down(const std::string& host, std::int64_t for_ms) {
    timeline_.record("the network of " + host + " is slow for " + std::to_string(for_ms) + " ms");
    slow_until_[host] = timeline_.now() + for_ms;
  }
  /// From now on every message arrives soon.
  void calm_down() {
    is_calm_ = true;
    cut_until_.clear();
    slow_until_.clear();
  }
  bool is_calm() const { return is_calm_; }

 private:
  bool is_lost(const std::string& host) { return is_cut(host) || (!is_calm_ && dice_.one_in(50)); }
  using Ends = std::map<std::string, std::int64_t>;
  bool lasts(const Ends& ends, const std::string& host) const {
    const auto found = ends.find(host);
    return found != ends.end() && timeline_.now() < found->second;
  }
  std::int64_t delay(const std::string& host) {
    if (lasts(slow_until_, host) && dice_.one_in(2)) return dice_.draw(3'000, 18'000);
    if (is_calm_ || !dice_.one_in(20)) return dice_.draw(1, 20);
    // Some messages arrive when the lease of their attempt has expired.
    return dice_.one_in(8) ? dice_.draw(4'000, 14'000) : dice_.draw(20, 4'000);
  }

  Timeline& timeline_;
  Dice& dice_;
  bool is_calm_ = false;
  Ends cut_until_, slow_until_;
};

}  // namespace quasi::sim
