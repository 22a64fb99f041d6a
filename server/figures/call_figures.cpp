#include "server/figures/call_figures.hpp"

#include <algorithm>

namespace quasi::server {

CallFigures::CallFigures(const std::vector<std::string>& methods) {
  for (const std::string& name : methods) methods_[name].name_ = name;
  other_.name_ = "other";
}

CallFigures::Method& CallFigures::of(std::string_view name) {
  const auto found = methods_.find(name);
  return found == methods_.end() ? other_ : found->second;
}

void CallFigures::Method::answer(std::string_view code, double seconds) {
  Histogram* histogram = nullptr;
  {
    const std::lock_guard lock(mutex_);
    auto found = by_code_.find(code);
    if (found == by_code_.end())
      found = by_code_.emplace(code, std::make_unique<Histogram>(kShortSeconds)).first;
    histogram = found->second.get();
  }
  histogram->observe(seconds);
}

void CallFigures::refuse_login(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  ++refused_logins_[reason];
}

void CallFigures::write(Exposition& out) {
  std::vector<Method*> all;
  for (auto& [name, method] : methods_) all.push_back(&method);
  all.push_back(&other_);
  out.family("quasi_rpc_seconds", "histogram", "Duration of calls, of streams from begin to end.");
  for (Method* method : all) {
    const std::lock_guard lock(method->mutex_);
    for (const auto& [code, histogram] : method->by_code_)
      out.sample({{"method", method->name_}, {"code", code}}, histogram->view());
  }
  out.family("quasi_rpc_inflight", "gauge", "Calls that have begun and not ended.");
  for (Method* method : all)
    out.sample({{"method", method->name_}}, static_cast<double>(method->open_.load()));
  out.family("quasi_fenced_writes_total", "counter", "Writes refused because their fence was old.");
  for (Method* method : all)
    if (method->fenced_ > 0)
      out.sample({{"rpc", method->name_}}, static_cast<double>(method->fenced_.load()));
  out.family("quasi_auth_failures_total", "counter", "Calls refused for their token or role.");
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [reason, count] : refused_logins_)
      out.sample({{"reason", reason}}, static_cast<double>(count));
  }
  out.family("quasi_rate_limited_total", "counter", "Calls refused because of a rate.");
  out.sample(static_cast<double>(rate_limited_.load()));
}

}  // namespace quasi::server
