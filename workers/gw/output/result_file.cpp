#include "workers/gw/output/result_file.hpp"

#include <cstdio>

#include "workers/gw/input/text_files.hpp"
#include "workers/gw/output/dataset_table.hpp"
#include "workers/gw/output/displacement_results.hpp"
#include "workers/gw/output/error_report.hpp"
#include "workers/gw/output/mode_results.hpp"
#include "workers/gw/output/sigma_results.hpp"
#include "workers/gw/output/summary.hpp"
#include "workers/gw/output/wave_vector_results.hpp"
#include "workers/gw/solver/mean_field/displaced/inner_states.hpp"
#include "workers/io/dataset_descriptions.hpp"

namespace quasi::gw {
namespace {

void write_states(const Calculation& run, H5Writer& file) {
  const auto n = static_cast<std::int64_t>(run.quasiparticles.size());
  const auto column = [&](const std::string& name, const char* units, const auto& value) {
    std::vector<double> values;
    for (const Quasiparticle& qp : run.quasiparticles) values.push_back(value(qp));
    file.write("/quasiparticles/" + name, values, {n}, units);
  };
  std::vector<double> k;
  std::vector<std::int32_t> band, spin;
  for (const Quasiparticle& qp : run.quasiparticles) {
    k.insert(k.end(), qp.k.begin(), qp.k.end());
    band.push_back(qp.band);
    spin.push_back(qp.spin);
  }
  std::vector<std::string> names;
  for (const Quasiparticle& qp : run.quasiparticles) {
    char name[96];
    std::snprintf(name, sizeof name, "k %.6g %.6g %.6g spin %d band %d", qp.k[0], qp.k[1], qp.k[2],
                  qp.spin, qp.band);
    names.emplace_back(name);
  }
  if (n > 0) write_labels("/quasiparticles/state", names, &file);
  file.write("/quasiparticles/k", k, {n, 3}, "1");
  file.write("/quasiparticles/band", band, {n}, "1");
  file.write("/quasiparticles/spin", spin, {n}, "1");
  column("mean_field_ev", "eV", [](const Quasiparticle& qp) { return qp.mean_field_ev; });
  column("x_ev", "eV", [](const Quasiparticle& qp) { return qp.x_ev; });
  column("sx_ev", "eV", [](const Quasiparticle& qp) { return qp.sx_ev; });
  column("ch_ev", "eV", [](const Quasiparticle& qp) { return qp.ch_ev; });
  column("sigma_ev", "eV", [](const Quasiparticle& qp) { return qp.sigma_ev; });
  column("z", "1", [](const Quasiparticle& qp) { return qp.z; });
  // The data are absent if the mean field has no V_xc.
  if (n > 0 && run.quasiparticles.front().vxc_ev) {
    column("vxc_ev", "eV", [](const Quasiparticle& qp) { return *qp.vxc_ev; });
    column("qp0_ev", "eV", [](const Quasiparticle& qp) { return *qp.qp0_ev; });
    column("qp1_ev", "eV", [](const Quasiparticle& qp) { return *qp.qp1_ev; });
  }
}

/// Writes the displaced atoms of the inner states of Σ.
void write_inner_states(const InnerStates& inner, H5Writer& file) {
  std::vector<std::int32_t> atom;
  std::vector<double> by_bohr;
  for (const DisplacedAtom& at : inner.displaced) {
    atom.push_back(at.atom);
    by_bohr.insert(by_bohr.end(), at.by_bohr.begin(), at.by_bohr.end());
  }
  const auto n = static_cast<std::int64_t>(atom.size());
  file.write("/inner_states/atom", atom, {n}, "1");
  file.write("/inner_states/displacement", by_bohr, {n, 3}, "Bohr");
}

/// Writes the short q that `coulomb.subsampling` adds, and ε⁻¹_00 at each of them,
/// [n_points][n_frequencies].
void write_head_samples(const DielectricMatrix& m, H5Writer& file) {
  std::vector<double> q;
  std::vector<Cplx> heads;
  const std::size_t n_points = m.head_samples[0].size();
  for (std::size_t i = 0; i < n_points; ++i) {
    const Vec3& at = m.head_samples[0][i].q;
    q.insert(q.end(), at.begin(), at.end());
    for (const auto& of_frequency : m.head_samples) heads.push_back(of_frequency[i].inverse_head);
  }
  const auto n = static_cast<std::int64_t>(n_points);
  file.write("/epsilon/subsampling_q", q, {n, 3}, "1");
  file.write("/epsilon/subsampling_head_inverse", heads,
             {n, static_cast<std::int64_t>(m.head_samples.size())}, "1");
}

void write_screening(const Calculation& run, H5Writer& file) {
  std::vector<double> q, head, head_inverse;
  std::vector<Cplx> head_spectrum;
  for (const DielectricMatrix& m : run.epsilon) {
    q.insert(q.end(), m.q.begin(), m.q.end());
    if (!m.epsilon_diagonal.empty()) head.push_back(m.epsilon_diagonal[0].real());
    head_inverse.push_back(m.inverse[0][0].real());
    for (std::size_t f = 0; f < m.n_frequencies(); ++f) head_spectrum.push_back(head_of(m, f));
  }
  const auto n_q = static_cast<std::int64_t>(run.epsilon.size());
  file.write("/epsilon/q", q, {n_q, 3}, "1");
  if (!head.empty()) file.write("/epsilon/head", head, {n_q}, "1");
  // ε⁻¹_00(q, ω): its inverse at q → 0 is the macroscopic dielectric function, and −Im of it is the
  // loss function.
  const auto n_f = static_cast<std::int64_t>(run.plan.epsilon.frequencies_ry.size());
  std::vector<Cplx> frequencies;
  for (const Cplx& omega : run.plan.epsilon.frequencies_ry)
    frequencies.push_back(omega * kRydberg_ev);
  file.write("/epsilon/frequencies", frequencies, {n_f}, "eV");
  file.write("/epsilon/head_inverse_of_frequency", head_spectrum, {n_q, n_f}, "1");
  file.write("/epsilon/head_inverse", head_inverse, {n_q}, "1");
  for (const DielectricMatrix& m : run.epsilon)
    if (!m.head_samples.empty()) write_head_samples(m, file);
  for (const DielectricMatrix& m : run.epsilon) {
    if (m.long_wave.empty()) continue;
    std::vector<Cplx> tensors;
    for (std::size_t f = 0; f < m.long_wave.size(); ++f)
      for (const auto& row : macroscopic_tensor(run, m, f))
        tensors.insert(tensors.end(), row.begin(), row.end());
    file.write("/epsilon/macroscopic_tensor", tensors, {n_f, 3, 3}, "1");
  }
}

void write_errors(const PseudobandErrors& errors, H5Writer& file) {
  const auto n = static_cast<std::int64_t>(errors.estimate_ev.size());
  file.write("/errors/blocks", std::vector<std::int32_t>{errors.blocks}, {1}, "1");
  file.write("/errors/estimate", errors.estimate_ev, {n}, "eV");
  file.write("/errors/half_width", errors.half_width_ev, {n}, "eV");
  if (!errors.gap_ev) return;
  file.write("/errors/gap_estimate", std::vector<double>{*errors.gap_ev}, {1}, "eV");
  file.write("/errors/gap_half_width", std::vector<double>{*errors.gap_half_width_ev}, {1}, "eV");
}

}  // namespace

void write_result(const std::filesystem::path& path, const Calculation& run,
                  const std::optional<ConvergenceStudy>& study, const InputRecord& inputs) {
  H5Writer file(path);
  write_states(run, file);
  if (run.field.inner != nullptr) write_inner_states(*run.field.inner, file);
  write_screening(run, file);
  write_sigma_results(run, file);
  if (run.displacements) write_displacements(*run.displacements, run.field, file);
  if (run.phonons) write_modes(*run.phonons, *run.displacements, file);
  if (!run.wave_vectors.empty()) write_wave_vectors(run.wave_vectors, run.field, file);
  if (run.pseudoband_errors) write_errors(*run.pseudoband_errors, file);
  write_error_rows(run.errors, file);
  if (study) write_study(run, *study, file);
  write_result_root("gw", inputs, run.plan.notes, &file);
  describe_result(&file);
  file.commit();
}

void write_energies(const std::filesystem::path& directory, const Calculation& run) {
  write_error_file(directory, run);
  std::vector<QuasiparticleEntry> qp0, qp1;
  for (const Quasiparticle& qp : run.quasiparticles) {
    if (!qp.qp0_ev) return;
    qp0.push_back({qp.k, qp.spin, qp.band, qp.mean_field_ev, *qp.qp0_ev});
    qp1.push_back({qp.k, qp.spin, qp.band, qp.mean_field_ev, *qp.qp1_ev});
  }
  const std::string mark = run.violated_laws.empty() ? "" : ".violated";
  write_quasiparticles(directory / ("eqp0.dat" + mark), qp0);
  write_quasiparticles(directory / ("eqp1.dat" + mark), qp1);
}

}  // namespace quasi::gw
