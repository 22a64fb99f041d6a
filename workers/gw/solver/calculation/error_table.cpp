#include "workers/gw/solver/calculation/error_table.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workers/gw/solver/calculation/convergence_study.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {
namespace {

double largest(const ErrorRow& row) {
  return *std::max_element(row.value_ev.begin(), row.value_ev.end());
}

/// Collects the rows of a table.
class Rows {
 public:
  Rows(const Calculation& run, const ConvergenceStudy* study) : run_(run), study_(study) {}

  std::vector<ErrorRow> all() {
    add_random_vectors();
    add_bands();
    add_axis("epsilon_cutoff", "cutoff_ry");
    add_axis("bare_cutoff", "bare_cutoff_ry");
    add_axis("k_grid", "k_grid");
    for (const char* name : {"pole_model", "frequency_grid"})
      rows_.push_back({name, "spread", {}, std::nullopt});
    add_changes("coulomb_average", "spread", run_.zone_sum_change_ev);
    if (!run_.subsampling_change_ev.empty())
      add_changes("subsampling", "estimate", run_.subsampling_change_ev);
    add_linearisation();
    rows_.push_back({"near_poles", "bound", {}, std::nullopt});
    return std::move(rows_);
  }

 private:
  std::size_t size() const { return run_.quasiparticles.size(); }
  ErrorRow equal_for_all(const char* name, const char* kind, double value_ev) const {
    return {name, kind, std::vector<double>(size(), value_ev), value_ev};
  }

  /// Adds the errors of random vectors and of their windows.
  void add_random_vectors() {
    if (!run_.pseudobands || run_.pseudobands->keeps_all()) {
      for (const char* name : {"stochastic", "jackknife_bias", "window_width", "identity"})
        rows_.push_back(equal_for_all(name, "no random vectors", 0.0));
      return;
    }
    const PseudobandErrors errors = run_.pseudoband_errors.value_or(PseudobandErrors{});
    rows_.push_back(
        {"stochastic", "95 % interval", errors.half_width_ev, errors.gap_half_width_ev});
    rows_.push_back({"jackknife_bias", "estimate", errors.bias_ev, errors.gap_bias_ev});
    ErrorRow width{"window_width", "bound", errors.window_width_ev, std::nullopt};
    // Both edges err in one direction, each by at most its bound.
    if (width.examined()) width.gap_ev = largest(width);
    rows_.push_back(std::move(width));
    add_identity(run_.pseudobands->identity_error);
  }

  /// Adds the share of CH that windows lose or double. CH of all bands exceeds that of the windows.
  void add_identity(double identity_error) {
    ErrorRow row{"identity", "bound", {}, std::nullopt};
    for (const Quasiparticle& qp : run_.quasiparticles)
      row.value_ev.push_back(identity_error * std::abs(qp.ch_bare_ev));
    row.gap_ev = 2.0 * largest(row);
    rows_.push_back(std::move(row));
  }

  /// Adds the error of the bands that are left out. Polynomials of H leave none out.
  void add_bands() {
    if (run_.pseudobands && run_.pseudobands->filter != nullptr)
      return rows_.push_back(equal_for_all("bands", "bound", 0.0));
    add_axis("bands", "bands");
    const bool completed =
        run_.plan.sigma.method == SigmaMethod::kCohsex && run_.plan.sigma.exact_static_ch;
    if (rows_.back().examined() || completed) return;
    for (const SelfCheck& check : run_.self_test)
      if (check.name == "ch_truncation" && check.value)
        rows_.back() = equal_for_all("bands", "bound", std::abs(*check.value));
  }

  /// Adds the distance to the limit of a study and the error of that limit. A state that the study
  /// does not hold gets the largest value of the others.
  /// @param axis_name  StudyAxis::name
  void add_axis(const char* name, const std::string& axis_name) {
    ErrorRow row{name, "estimate", {}, std::nullopt};
    for (const StudyAxis& axis : study_ != nullptr ? study_->axes : std::vector<StudyAxis>{}) {
      if (axis.name != axis_name || axis.states.empty()) continue;
      const auto reach = [](const ConvergenceLimit& limit, double own) {
        return std::abs(limit.value - own) + limit.error;
      };
      std::vector<double> found;
      for (std::size_t j = 0; j < axis.states.size(); ++j)
        found.push_back(reach(axis.limit[j], axis.energy_ev.back()[j]));
      row.value_ev.assign(size(), *std::max_element(found.begin(), found.end()));
      for (std::size_t j = 0; j < found.size(); ++j) row.value_ev[axis.states[j]] = found[j];
      if (!axis.gap_ev.empty()) row.gap_ev = reach(axis.gap_limit, axis.gap_ev.back());
    }
    rows_.push_back(std::move(row));
  }

  /// Adds changes of the energies by another treatment of W near q → 0.
  void add_changes(const char* name, const char* kind, const std::vector<double>& change) {
    ErrorRow row{name, kind, {}, std::nullopt};
    for (const double value : change) row.value_ev.push_back(std::abs(value));
    if (row.examined())
      if (const auto [top, bottom] = edges(); top && bottom)
        row.gap_ev = std::abs(change[*bottom] - change[*top]);
    rows_.push_back(std::move(row));
  }
  /// Returns the positions of the highest occupied and the lowest empty state of the mean field.
  std::pair<std::optional<std::size_t>, std::optional<std::size_t>> edges() const {
    std::optional<std::size_t> top, bottom;
    for (std::size_t i = 0; i < size(); ++i) {
      const Quasiparticle& qp = run_.quasiparticles[i];
      const bool occupied =
          qp.band <= run_.field.n_occupied_of_spin[static_cast<std::size_t>(qp.spin - 1)];
      std::optional<std::size_t>& edge = occupied ? top : bottom;
      if (!edge || (qp.mean_field_ev > run_.quasiparticles[*edge].mean_field_ev) == occupied)
        edge = i;
    }
    return {top, bottom};
  }

  /// Adds the distance of E_qp1 from the root of Σ(E), if every state has a spectrum with a root.
  void add_linearisation() {
    ErrorRow row{"linearisation", "estimate", {}, std::nullopt};
    for (const Quasiparticle& qp : run_.quasiparticles)
      for (const Spectrum& s : run_.spectra)
        if (s.k_index == qp.k_index && s.spin == qp.spin && s.band_begin <= qp.band &&
            qp.band <= s.band_end && s.best && s.status != RootStatus::kExtrapolated && qp.qp1_ev)
          row.value_ev.push_back(std::abs(s.best->energy_ev - *qp.qp1_ev));
    if (row.value_ev.size() != size()) row.value_ev.clear();
    if (row.examined()) row.gap_ev = 2.0 * largest(row);
    rows_.push_back(std::move(row));
  }

  const Calculation& run_;
  const ConvergenceStudy* study_;
  std::vector<ErrorRow> rows_;
};

}  // namespace

ErrorTable error_table(const Calculation& run, const ConvergenceStudy* study) {
  if (run.quasiparticles.empty()) return {};
  ErrorTable table{.rows = Rows(run, study).all(),
                   .systematic_ev = std::vector<double>(run.quasiparticles.size()),
                   .systematic_gap_ev = 0.0};
  for (const ErrorRow& row : table.rows) {
    if (!row.systematic() || !row.examined()) continue;
    for (std::size_t i = 0; i < table.systematic_ev.size(); ++i)
      table.systematic_ev[i] += row.value_ev[i];
    if (row.gap_ev && table.systematic_gap_ev)
      *table.systematic_gap_ev += *row.gap_ev;
    else
      table.systematic_gap_ev = std::nullopt;
  }
  return table;
}

}  // namespace quasi::gw
