#include <algorithm>
#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/gw/input/hdf5_header.hpp"
#include "workers/gw/solver/screening/epsilon_file.hpp"
#include "workers/gw/solver/screening/epsilon_file_format.hpp"
#include "workers/io/hdf5.hpp"

// Writes eps0mat.h5 and epsmat.h5 in the format of BerkeleyGW.
namespace quasi::gw {
namespace {

int truncation_code(Truncation truncation) {
  switch (truncation) {
    case Truncation::kNone:
      return 0;
    case Truncation::kSphere:
      return 2;
    case Truncation::kWire:
      return 4;
    case Truncation::kBox:
      return 5;
    case Truncation::kSlab:
      return 6;
  }
  return 0;
}

/// Returns the index of the frequency in EpsilonOptions at each position of the file. The file
/// holds the real axis first, then 0 and the imaginary axis.
std::vector<std::size_t> file_order(const std::vector<Cplx>& frequencies, int n_real) {
  std::vector<std::size_t> order;
  const std::size_t n_imaginary = frequencies.size() - static_cast<std::size_t>(n_real);
  for (std::size_t f = n_imaginary; f < frequencies.size(); ++f) order.push_back(f);
  for (std::size_t f = 0; f < n_imaginary; ++f) order.push_back(f);
  return order;
}

void write_int(H5Writer& file, const std::string& path, std::int64_t value) {
  file.write(path, std::vector<std::int32_t>{static_cast<std::int32_t>(value)}, {}, "1");
}

/// Middle of the gap, Ry.
double fermi_energy(const MeanField& field) {
  double top = -INFINITY, bottom = INFINITY;
  for (int spin = 0; spin < field.n_spins(); ++spin)
    for (int ik = 0; ik < field.waves.n_k(); ++ik) {
      const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(spin)];
      if (n_v > 0) top = std::max(top, field.waves.energy(spin, ik, n_v - 1));
      bottom = std::min(bottom, field.waves.energy(spin, ik, n_v));
    }
  return 0.5 * (top + bottom);
}

using MatrixList = std::vector<const DielectricMatrix*>;

/// Returns the value of freq_dep that describes a list of frequencies.
int dependence_of(const EpsilonOptions& options) {
  const std::size_t n_f = options.frequencies_ry.size();
  if (n_f == 1) return kStatic;
  return n_f == 2 && options.n_real == 0 ? kTwoFrequencies : kFullFrequency;
}

void write_parameters(H5Writer& file, const MeanField& field, const EpsilonOptions& options,
                      const CoulombInteraction& coulomb) {
  write_int(file, "/eps_header/versionnumber", 3);
  write_int(file, "/eps_header/flavor", 2);
  const std::string p = "/eps_header/params/";
  write_int(file, p + "matrix_type", 0);
  write_int(file, p + "has_advanced", 0);
  write_int(file, p + "nmatrix", 1);
  write_int(file, p + "matrix_flavor", 2);
  write_int(file, p + "icutv", truncation_code(coulomb.options().truncation));
  file.write_scalar(p + "ecuts", options.epsilon_cutoff_ry, "Ry");
  write_int(file, p + "nband", options.bands);
  file.write_scalar(p + "efermi", fermi_energy(field), "Ry");
  write_int(file, p + "intraband_flag", 0);
  file.write_scalar(p + "intraband_overlap_min", 0.5, "1");
  write_int(file, p + "subsample", 0);
  write_int(file, p + "subspace", 0);
}

/// @param order  position of each frequency of the file in `options`
void write_frequencies(H5Writer& file, const EpsilonOptions& options,
                       const std::vector<std::size_t>& order) {
  const auto n_f = static_cast<std::int64_t>(options.frequencies_ry.size());
  const int dependence = dependence_of(options);
  write_int(file, "/eps_header/freqs/freq_dep", dependence);
  write_int(file, "/eps_header/freqs/nfreq", n_f);
  write_int(file, "/eps_header/freqs/nfreq_imag",
            dependence == kStatic           ? 0
            : dependence == kTwoFrequencies ? 1
                                            : n_f - options.n_real);
  std::vector<double> frequencies;
  for (const std::size_t f : order) {
    frequencies.push_back(options.frequencies_ry[f].real() * kRydberg_ev);
    frequencies.push_back(options.frequencies_ry[f].imag() * kRydberg_ev);
  }
  file.write("/eps_header/freqs/freqs", frequencies, {n_f, 2}, "eV");
}

void write_points(H5Writer& file, const MeanField& field, const MatrixList& list) {
  const auto n_q = static_cast<std::int64_t>(list.size());
  std::vector<double> q;
  for (const DielectricMatrix* m : list) q.insert(q.end(), m->q.begin(), m->q.end());
  write_int(file, "/eps_header/qpoints/nq", n_q);
  file.write("/eps_header/qpoints/qpts", q, {n_q, 3}, "1");
  file.write("/eps_header/qpoints/qgrid",
             std::vector<std::int32_t>(field.waves.k_grid.begin(), field.waves.k_grid.end()), {3},
             "1");
  file.write("/eps_header/qpoints/qpt_done",
             std::vector<std::int32_t>(static_cast<std::size_t>(n_q), 1), {n_q}, "1");
}

/// Sorts the plane waves of the density at one q, counted from 1: first the sphere in its own
/// order, then all others by |q+G|².
/// @param kinetic_ry  |q+G|² of the density's plane waves
/// @throws InvalidInput if the sphere leaves the density's plane waves
std::vector<std::int32_t> plane_wave_order(const MeanField& field, const DielectricMatrix& m,
                                           const GIndex& index,
                                           const std::vector<double>& kinetic_ry,
                                           double epsilon_cutoff_ry) {
  std::vector<std::int32_t> sorted;
  std::vector<char> in_sphere(kinetic_ry.size(), 0);
  for (const IVec3& g : m.sphere.g) {
    const std::int32_t at = index.find(g);
    if (at < 0)
      throw InvalidInput("epsilon.cutoff_ry = " + std::to_string(epsilon_cutoff_ry) +
                         " reaches beyond the density's plane waves (" +
                         std::to_string(field.waves.header.density_cutoff_ry) + " Ry); lower it");
    sorted.push_back(at + 1);
    in_sphere[static_cast<std::size_t>(at)] = 1;
  }
  std::vector<std::int32_t> rest;
  for (std::size_t g = 0; g < kinetic_ry.size(); ++g)
    if (!in_sphere[g]) rest.push_back(static_cast<std::int32_t>(g) + 1);
  std::stable_sort(rest.begin(), rest.end(), [&](std::int32_t a, std::int32_t b) {
    return std::llround(kinetic_ry[static_cast<std::size_t>(a - 1)] * 1e8) <
           std::llround(kinetic_ry[static_cast<std::size_t>(b - 1)] * 1e8);
  });
  sorted.insert(sorted.end(), rest.begin(), rest.end());
  return sorted;
}

/// Writes the spheres of a list of q. @return the largest number of plane waves in a sphere
std::int64_t write_spheres(H5Writer& file, const MeanField& field, const MatrixList& list,
                           double epsilon_cutoff_ry) {
  const auto& master = field.waves.header.g;
  const auto n_q = static_cast<std::int64_t>(list.size()),
             n_rho = static_cast<std::int64_t>(master.size());
  const GIndex index(master);
  std::int64_t edge = 0;
  for (const DielectricMatrix* m : list) edge = std::max(edge, m->size());
  std::vector<std::int32_t> size, to_rho, from_rho;
  std::vector<double> kinetic, v;
  for (const DielectricMatrix* m : list) {
    size.push_back(static_cast<std::int32_t>(m->size()));
    std::vector<double> k2(static_cast<std::size_t>(n_rho));
    for (std::size_t g = 0; g < k2.size(); ++g) {
      const Vec3 at = m->sphere.q + to_real(master[g]);
      k2[g] = metric_dot(field.crystal().bdot, at, at);
    }
    const auto sorted = plane_wave_order(field, *m, index, k2, epsilon_cutoff_ry);
    std::vector<std::int32_t> back(sorted.size());
    for (std::size_t i = 0; i < sorted.size(); ++i)
      back[static_cast<std::size_t>(sorted[i] - 1)] = static_cast<std::int32_t>(i) + 1;
    to_rho.insert(to_rho.end(), sorted.begin(), sorted.end());
    from_rho.insert(from_rho.end(), back.begin(), back.end());
    kinetic.insert(kinetic.end(), k2.begin(), k2.end());
    std::vector<double> coulomb_of(static_cast<std::size_t>(edge), 0.0);
    std::copy(m->coulomb.begin(), m->coulomb.end(), coulomb_of.begin());
    v.insert(v.end(), coulomb_of.begin(), coulomb_of.end());
  }
  const std::string g = "/eps_header/gspace/";
  file.write(g + "nmtx", size, {n_q}, "1");
  write_int(file, g + "nmtx_max", edge);
  file.write(g + "ekin", kinetic, {n_q, n_rho}, "Ry");
  file.write(g + "gind_eps2rho", to_rho, {n_q, n_rho}, "1");
  file.write(g + "gind_rho2eps", from_rho, {n_q, n_rho}, "1");
  file.write(g + "vcoul", v, {n_q, edge}, "Ry bohr^3");
  return edge;
}

void write_matrices(H5Writer& file, const MatrixList& list, const std::vector<std::size_t>& order,
                    std::int64_t edge) {
  const auto n_q = static_cast<std::int64_t>(list.size()),
             n_f = static_cast<std::int64_t>(order.size());
  file.create("/mats/matrix", {n_q, 1, n_f, edge, edge, 2}, "1");
  std::vector<double> diagonal;
  std::vector<double> slab(static_cast<std::size_t>(2 * edge * edge));
  for (std::int64_t iq = 0; iq < n_q; ++iq) {
    const DielectricMatrix& m = *list[static_cast<std::size_t>(iq)];
    const std::int64_t n = m.size();
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::fill(slab.begin(), slab.end(), 0.0);
      UnsetVector<Cplx> room;
      const auto& inverse = inverse_of(m, order[i], room);
      for (std::int64_t row = 0; row < n; ++row)
        for (std::int64_t column = 0; column < n; ++column) {
          const Cplx value = inverse[static_cast<std::size_t>(row * n + column)];
          const auto at = static_cast<std::size_t>(2 * (column * edge + row));
          slab[at] = value.real();
          slab[at + 1] = value.imag();
        }
      const std::int64_t start[] = {iq, 0, static_cast<std::int64_t>(i), 0, 0, 0};
      const std::int64_t count[] = {1, 1, 1, edge, edge, 2};
      file.write_slab("/mats/matrix", start, count, slab);
    }
    for (std::int64_t row = 0; row < edge; ++row) {
      const Cplx value = row < n ? m.inverse[0][static_cast<std::size_t>(row * n + row)] : Cplx{};
      diagonal.push_back(value.real());
      diagonal.push_back(value.imag());
    }
  }
  file.write("/mats/matrix-diagonal", diagonal, {n_q, edge, 2}, "1");
}

void write_one(const std::filesystem::path& path, const MeanField& field, const MatrixList& list,
               const EpsilonOptions& options, const CoulombInteraction& coulomb) {
  H5Writer file(path);
  write_hdf5_header(file, field.waves);
  write_parameters(file, field, options, coulomb);
  const auto order = file_order(options.frequencies_ry, options.n_real);
  write_frequencies(file, options, order);
  write_points(file, field, list);
  const std::int64_t edge = write_spheres(file, field, list, options.epsilon_cutoff_ry);
  write_matrices(file, list, order, edge);
  file.commit();
}

}  // namespace

void write_epsilon(const EpsilonFiles& files, const MeanField& field,
                   const std::vector<DielectricMatrix>& epsilon, const EpsilonOptions& options,
                   const CoulombInteraction& coulomb) {
  std::vector<const DielectricMatrix*> gamma, others;
  for (const DielectricMatrix& m : epsilon) (m.at_gamma ? gamma : others).push_back(&m);
  if (!gamma.empty()) write_one(files.gamma, field, gamma, options, coulomb);
  if (!others.empty()) write_one(files.others, field, others, options, coulomb);
}

}  // namespace quasi::gw
