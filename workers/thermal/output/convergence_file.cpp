#include "workers/thermal/output/convergence_file.hpp"

#include "workers/thermal/output/tensors.hpp"

namespace quasi::thermal {
namespace {

std::vector<double> values(const std::vector<std::array<ConvergenceLimit, 3>>& limits,
                           double ConvergenceLimit::*member, double factor) {
  std::vector<double> all;
  for (const auto& at : limits)
    for (const ConvergenceLimit& e : at) all.push_back(factor * (e.*member));
  return all;
}

}  // namespace

void write_study(const Deck& deck, const ConvergenceStudy& study, H5Writer& out) {
  const double factor = sheet_factor(deck.crystal, deck.control.sheet_options());
  const auto n_t = static_cast<std::int64_t>(deck.control.temperatures_k.size());
  const auto n_meshes = static_cast<std::int64_t>(study.mesh.size());
  const auto n_widths = static_cast<std::int64_t>(study.scale_broad.size());
  std::vector<std::int64_t> meshes;
  for (const Index3& mesh : study.mesh) meshes.insert(meshes.end(), mesh.begin(), mesh.end());
  out.write("/convergence/mesh", meshes, {n_meshes, 3}, "1");
  out.write("/convergence/kappa_by_mesh", flat(study.kappa_by_mesh, factor), {n_meshes, n_t, 3, 3},
            "W/(m K)");
  out.write("/convergence/mesh_limit", values(study.mesh_limit, &ConvergenceLimit::value, factor),
            {n_t, 3}, "W/(m K)");
  out.write("/convergence/mesh_limit_error",
            values(study.mesh_limit, &ConvergenceLimit::error, factor), {n_t, 3}, "W/(m K)");
  out.write("/convergence/scale_broad", study.scale_broad, {n_widths}, "1");
  out.write("/convergence/kappa_by_width", flat(study.kappa_by_width, factor),
            {n_widths, n_t, 3, 3}, "W/(m K)");
  out.write("/convergence/width_limit", values(study.width_limit, &ConvergenceLimit::value, factor),
            {n_t, 3}, "W/(m K)");
  out.write("/convergence/width_limit_error",
            values(study.width_limit, &ConvergenceLimit::error, factor), {n_t, 3}, "W/(m K)");
}

nlohmann::json summarise_study(const Deck& deck, const ConvergenceStudy& study) {
  const double factor = sheet_factor(deck.crystal, deck.control.sheet_options());
  const std::size_t n_t = deck.control.temperatures_k.size();
  const auto table = [&](const std::vector<Mat3>& kappa, std::size_t n) {
    nlohmann::json all = nlohmann::json::array();
    for (std::size_t i = 0; i < n; ++i) {
      nlohmann::json by_temperature = nlohmann::json::array();
      for (std::size_t t = 0; t < n_t; ++t)
        by_temperature.push_back(json_of(kappa[i * n_t + t], factor));
      all.push_back(std::move(by_temperature));
    }
    return all;
  };
  const auto limit = [&](const std::vector<std::array<ConvergenceLimit, 3>>& at) {
    nlohmann::json kappa = nlohmann::json::array();
    nlohmann::json error = nlohmann::json::array();
    for (const auto& e : at) {
      kappa.push_back({factor * e[0].value, factor * e[1].value, factor * e[2].value});
      error.push_back({factor * e[0].error, factor * e[1].error, factor * e[2].error});
    }
    return nlohmann::json{{"kappa_w_per_mk", kappa}, {"error_w_per_mk", error}};
  };
  nlohmann::json meshes = nlohmann::json::array();
  for (const Index3& mesh : study.mesh) meshes.push_back({mesh[0], mesh[1], mesh[2]});
  return {{"mesh", meshes},
          {"kappa_by_mesh_w_per_mk", table(study.kappa_by_mesh, study.mesh.size())},
          {"mesh_limit", limit(study.mesh_limit)},
          {"scale_broad", study.scale_broad},
          {"kappa_by_width_w_per_mk", table(study.kappa_by_width, study.scale_broad.size())},
          {"width_limit", limit(study.width_limit)}};
}

}  // namespace quasi::thermal
