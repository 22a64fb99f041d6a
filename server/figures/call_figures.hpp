#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "server/figures/exposition.hpp"

namespace quasi::server {

/// Durations and refusals of calls, by method. Methods that were not named at construction count as
/// "other", so that callers cannot add labels. Thread-safe.
class CallFigures {
 public:
  /// @param methods  names of the methods without their service
  explicit CallFigures(const std::vector<std::string>& methods);

  /// The figures of one method.
  class Method {
   public:
    void begin() { ++open_; }
    void end() { --open_; }
    /// @param code  name of the status, e.g. "OK"
    void answer(std::string_view code, double seconds);
    /// A write with an old fence had no effect (I5).
    void fenced() { ++fenced_; }

   private:
    friend class CallFigures;
    std::string name_;
    std::atomic<std::int64_t> open_{0};
    std::atomic<std::int64_t> fenced_{0};
    std::mutex mutex_;
    std::map<std::string, std::unique_ptr<Histogram>, std::less<>> by_code_;
  };

  Method& of(std::string_view name);
  /// Counts a call without a valid token, by the reason of its refusal.
  void refuse_login(const std::string& reason);
  void limit_rate() { ++rate_limited_; }
  void write(Exposition& out);

 private:
  std::map<std::string, Method, std::less<>> methods_;
  Method other_;
  std::mutex mutex_;
  std::map<std::string, std::int64_t> refused_logins_;
  std::atomic<std::int64_t> rate_limited_{0};
};

}  // namespace quasi::server
