#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/input/hdf5_header.hpp"
#include "workers/gw/input/header_checks.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/screening/epsilon_file.hpp"
#include "workers/gw/solver/screening/epsilon_file_format.hpp"
#include "workers/io/hdf5.hpp"

// Reads eps0mat.h5 and epsmat.h5 in the format of BerkeleyGW.
namespace quasi::gw {
namespace {

std::string text(const Vec3& v) {
  char buffer[80];
  std::snprintf(buffer, sizeof buffer, "(%.6f, %.6f, %.6f)", v[0], v[1], v[2]);
  return buffer;
}

/// The frequencies of a file in the order of DielectricMatrix::inverse.
struct FileFrequencies {
  std::vector<Cplx> ry;
  int n_real = 0;
  std::vector<std::int64_t> position;  ///< of each frequency in the file
};

/// One matrix of a file.
struct StoredPoint {
  std::int64_t index = 0;  ///< in the list of q of the file
  Vec3 q{};                ///< q₀ where `at_gamma`
  bool at_gamma = false;   ///< stands for q → 0
};

/// An open eps0mat.h5 or epsmat.h5.
class EpsilonReader {
 public:
  /// @throws InvalidInput if the file holds a matrix of a kind that is not supported
  explicit EpsilonReader(const std::filesystem::path& path)
      : file_(path), name_(path.filename().string()) {
    check_kind();
  }
  const std::string& name() const { return name_; }
  const H5Reader& file() const { return file_; }
  FileFrequencies frequencies() const;
  std::vector<Vec3> q_points() const;
  /// @param header  /mf_header of this file
  DielectricMatrix matrix(const StoredPoint& point, const MeanFieldHeader& header,
                          const Crystal& crystal, const CoulombInteraction& coulomb) const;

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw InvalidInput("'" + name_ + "'" + what);
  }
  void check_kind() const;
  GSphere sphere(const StoredPoint& point, const MeanFieldHeader& header,
                 const Crystal& crystal) const;
  UnsetVector<Cplx> values(const StoredPoint& point, std::int64_t frequency, std::int64_t n) const;

  H5Reader file_;
  std::string name_;
};

void EpsilonReader::check_kind() const {
  if (file_.integer("/eps_header/params/matrix_type") != 0)
    refuse(" does not hold ε⁻¹ (matrix_type must be 0)");
  if (file_.integer("/eps_header/params/nmatrix") != 1)
    refuse(" holds several matrices a frequency (nmatrix); only one is supported");
  if (file_.integer("/eps_header/params/subspace") != 0 &&
      file_.has("/eps_header/subspace/matrix_in_subspace_basis") &&
      file_.integer("/eps_header/subspace/matrix_in_subspace_basis") != 0)
    refuse(" holds ε⁻¹ in a subspace basis, which is not read; write it in plane waves");
}

FileFrequencies EpsilonReader::frequencies() const {
  const std::int64_t dependence = file_.integer("/eps_header/freqs/freq_dep");
  if (dependence != kStatic && dependence != kFullFrequency && dependence != kTwoFrequencies)
    refuse(": /eps_header/freqs/freq_dep = " + std::to_string(dependence) + "; known: 0, 2, 3");
  const std::int64_t n = file_.integer("/eps_header/freqs/nfreq");
  require_in_range(n, 1, 100000, "/eps_header/freqs/nfreq", name_);
  const auto flat = file_.doubles("/eps_header/freqs/freqs");
  if (flat.size() != static_cast<std::size_t>(2 * n))
    refuse(": /eps_header/freqs/freqs does not hold nfreq entries");
  std::int64_t n_imaginary =
      dependence == kStatic ? n : file_.integer("/eps_header/freqs/nfreq_imag");
  if (dependence == kTwoFrequencies) n_imaginary = n;
  require_in_range(n_imaginary, dependence == kFullFrequency ? 0 : 1, n,
                   "/eps_header/freqs/nfreq_imag", name_);
  FileFrequencies list;
  list.n_real = static_cast<int>(n - n_imaginary);
  const auto take = [&](std::int64_t i) {
    list.ry.emplace_back(flat[static_cast<std::size_t>(2 * i)] / kRydberg_ev,
                         flat[static_cast<std::size_t>(2 * i + 1)] / kRydberg_ev);
    list.position.push_back(i);
  };
  for (std::int64_t i = n - n_imaginary; i < n; ++i) take(i);
  if (list.ry.empty() || std::abs(list.ry.front()) > 1e-9)
    refuse(" has no ω = 0 on its imaginary axis; calculate ε with it");
  list.ry.front() = 0.0;
  for (std::int64_t i = 0; i < n - n_imaginary; ++i) take(i);
  return list;
}

std::vector<Vec3> EpsilonReader::q_points() const {
  const auto flat = file_.doubles("/eps_header/qpoints/qpts");
  const auto done = file_.integers("/eps_header/qpoints/qpt_done");
  std::vector<Vec3> q;
  for (std::size_t i = 0; i + 2 < flat.size(); i += 3)
    q.push_back({flat[i], flat[i + 1], flat[i + 2]});
  for (std::size_t i = 0; i < q.size(); ++i)
    if (i >= done.size() || done[i] == 0)
      refuse(": ε⁻¹ of q = " + text(q[i]) + " is not finished (qpt_done)");
  return q;
}

GSphere EpsilonReader::sphere(const StoredPoint& point, const MeanFieldHeader& header,
                              const Crystal& crystal) const {
  const std::int64_t n =
      file_.integers("/eps_header/gspace/nmtx").at(static_cast<std::size_t>(point.index));
  const auto n_rho = static_cast<std::int64_t>(header.g.size());
  require_in_range(n, 1, file_.integer("/eps_header/gspace/nmtx_max"), "/eps_header/gspace/nmtx",
                   name_);
  const std::int64_t start[] = {point.index, 0};
  const std::int64_t count[] = {1, n};
  if (file_.shape("/eps_header/gspace/gind_eps2rho") !=
      std::vector<std::int64_t>{file_.integer("/eps_header/qpoints/nq"), n_rho})
    refuse(": /eps_header/gspace/gind_eps2rho must be [nq][ng]");
  GSphere sphere;
  sphere.q = point.at_gamma ? Vec3{} : point.q;
  for (const double one_based : file_.slab("/eps_header/gspace/gind_eps2rho", start, count)) {
    const auto at = static_cast<std::int64_t>(one_based) - 1;
    require_in_range(at + 1, 1, n_rho, "/eps_header/gspace/gind_eps2rho", name_);
    const IVec3& g = header.g[static_cast<std::size_t>(at)];
    const Vec3 k = sphere.q + to_real(g);
    sphere.g.push_back(g);
    sphere.kinetic_ry.push_back(metric_dot(crystal.bdot, k, k));
  }
  for (std::size_t g = 1; g < sphere.g.size(); ++g)
    if (sphere.kinetic_ry[g] < sphere.kinetic_ry[g - 1] - 1e-6)
      refuse(": the plane waves of q = " + text(point.q) + " are not sorted by |q+G|²");
  return sphere;
}

/// @param frequency  position in the file
UnsetVector<Cplx> EpsilonReader::values(const StoredPoint& point, std::int64_t frequency,
                                        std::int64_t n) const {
  const std::int64_t parts = file_.shape("/mats/matrix").back();  // 1: real, 2: complex
  const std::int64_t start[] = {point.index, 0, frequency, 0, 0, 0};
  const std::int64_t count[] = {1, 1, 1, n, n, parts};
  const auto flat = file_.slab("/mats/matrix", start, count);
  UnsetVector<Cplx> inverse(static_cast<std::size_t>(n * n));
  for (std::int64_t column = 0; column < n; ++column)
    for (std::int64_t row = 0; row < n; ++row) {
      const auto at = static_cast<std::size_t>(parts * (column * n + row));
      const Cplx value{flat[at], parts == 2 ? flat[at + 1] : 0.0};
      if (!std::isfinite(value.real()) || !std::isfinite(value.imag()))
        refuse(": an element of ε⁻¹ at q = " + text(point.q) + " is not finite");
      inverse[static_cast<std::size_t>(row * n + column)] = value;
    }
  return inverse;
}

DielectricMatrix EpsilonReader::matrix(const StoredPoint& point, const MeanFieldHeader& header,
                                       const Crystal& crystal,
                                       const CoulombInteraction& coulomb) const {
  FileFrequencies list = frequencies();
  DielectricMatrix m;
  m.q = point.q;
  m.at_gamma = point.at_gamma;
  m.frequencies_ry = std::move(list.ry);
  m.n_real = list.n_real;
  m.sphere = sphere(point, header, crystal);
  for (const IVec3& g : m.sphere.g) m.coulomb.push_back(coulomb.plain(point.q, g));
  for (const std::int64_t position : list.position)
    m.inverse.push_back(values(point, position, m.size()));
  return m;
}

}  // namespace

StoredEpsilon describe_epsilon(const EpsilonFiles& files) {
  StoredEpsilon stored;
  for (const auto& path : {files.gamma, files.others}) {
    if (path.empty()) continue;
    const EpsilonReader in(path);
    FileFrequencies frequencies = in.frequencies();
    const double cutoff_ry = in.file().number("/eps_header/params/ecuts");
    if (stored.q.empty()) {
      stored.epsilon_cutoff_ry = cutoff_ry;
      stored.bands = static_cast<int>(in.file().integer("/eps_header/params/nband"));
      stored.frequencies_ry = std::move(frequencies.ry);
      stored.n_real = frequencies.n_real;
    } else if (std::abs(cutoff_ry - stored.epsilon_cutoff_ry) > 1e-9 ||
               frequencies.ry != stored.frequencies_ry) {
      throw InvalidInput("'" + files.gamma.filename().string() + "' and '" + in.name() +
                         "' have different cut-offs or frequencies");
    }
    for (const Vec3& q : in.q_points()) stored.q.push_back(q);
  }
  return stored;
}

std::vector<DielectricMatrix> read_epsilon(const EpsilonFiles& files, const MeanField& field,
                                           const CoulombInteraction& coulomb) {
  std::vector<DielectricMatrix> epsilon(field.waves.k.size());
  std::vector<char> found(epsilon.size(), 0);
  for (const auto& path : {files.gamma, files.others}) {
    if (path.empty()) continue;
    const EpsilonReader in(path);
    const MeanFieldHeader header = read_hdf5_header(in.file(), in.name());
    require_same_crystal(field.waves.header, "WFN", header, in.name());
    const auto list = in.q_points();
    const bool gamma = path == files.gamma;
    for (std::size_t iq = 0; iq < list.size(); ++iq)
      for (std::size_t ik = 0; ik < field.waves.k.size(); ++ik) {
        const Vec3& k = field.waves.k[ik];
        const bool k_is_gamma = dot(k, k) < 1e-12;
        const Vec3 d = list[iq] - k;
        if (k_is_gamma != gamma ||
            (!gamma && std::abs(d[0]) + std::abs(d[1]) + std::abs(d[2]) > 1e-5))
          continue;
        const StoredPoint point{
            .index = static_cast<std::int64_t>(iq), .q = gamma ? list[iq] : k, .at_gamma = gamma};
        epsilon[ik] = in.matrix(point, header, field.crystal(), coulomb);
        found[ik] = 1;
      }
  }
  for (std::size_t ik = 0; ik < found.size(); ++ik)
    if (!found[ik])
      throw InvalidInput("the stored ε⁻¹ has no q = " + text(field.waves.k[ik]) +
                         ", an irreducible point of WFN; calculate it, or leave epsilon.eps0mat "
                         "and epsilon.epsmat out");
  return epsilon;
}

}  // namespace quasi::gw
