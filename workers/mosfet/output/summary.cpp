#include "workers/mosfet/output/summary.hpp"

#include "workers/mosfet/model/run_names.hpp"
#include "workers/mosfet/output/derived_file.hpp"
#include "workers/mosfet/solver/verdict/point_verdict.hpp"

namespace quasi::mosfet {

nlohmann::json summary_of(const Deck& deck, const std::vector<PointResult>& points) {
  nlohmann::json summary{{"warnings", deck.notes},
                         {"mode", mode_name(deck.run.mode)},
                         {"transport", transport_name(deck.run.transport)},
                         {"points", nlohmann::json::array()}};
  if (deck.run.mode == RunMode::kSteady)
    summary["derived"] = derived_summary(derived_of(deck, points));
  for (const PointResult& point : points) {
    nlohmann::json row{{"vgs_v", point.bias.vgs_v},
                       {"vds_v", point.bias.vds_v},
                       {"status", status_name(point.status)}};
    for (const auto& [name, value] : point.numbers) row[name] = value;
    if (row.contains("steps")) row["steps"] = static_cast<std::int64_t>(point.numbers.at("steps"));
    if (has_currents(deck.run)) row["remarks"] = judge_point(deck.run, point).remarks;
    summary["points"].push_back(row);
  }
  return summary;
}

}  // namespace quasi::mosfet
