#pragma once

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>

#include "quasi/v1/job.pb.h"

namespace quasi::sim {

/// Figure of a result that stop rules compare. Engines write it into their summary.
inline constexpr char kFigure[] = "figure";

/// The limits of a set of jobs. A label of its first job holds them, so that the judge knows them
/// from the person who submitted the set and not from the server. A limit of 0 is none.
struct SetPlan {
  std::int64_t max_concurrent = 0;
  std::int64_t stop_after_failures = 0;
  /// The set stops once so many jobs have a figure below `rule_below`.
  std::int64_t rule_jobs = 0;
  std::int64_t rule_below = 0;

  void write_to(v1::JobSpec& spec) const {
    std::ostringstream text;
    text << max_concurrent << ' ' << stop_after_failures << ' ' << rule_jobs << ' ' << rule_below;
    (*spec.mutable_labels())["set"] = text.str();
  }
  static std::optional<SetPlan> of(const v1::JobSpec& spec) {
    const auto label = spec.labels().find("set");
    if (label == spec.labels().end()) return std::nullopt;
    SetPlan plan;
    std::istringstream(label->second) >> plan.max_concurrent >> plan.stop_after_failures >>
        plan.rule_jobs >> plan.rule_below;
    return plan;
  }
};

}  // namespace quasi::sim
