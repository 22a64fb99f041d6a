#include "workers/thermal/output/phonopy/phonopy_files.hpp"

#include <complex>
#include <string>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/solver/harmonic/dispersion.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

constexpr double kThzAngstrom = 10.0;                       // 1 km/s
constexpr double kPhonopyLength = 10.0 * 2.0 * units::kPi;  // 1/Å without 2π, in 1/nm with it

std::vector<double> in_thz(const std::vector<double>& omega_rad_ps) {
  std::vector<double> frequency;
  for (const double omega : omega_rad_ps) frequency.push_back(omega / (2.0 * units::kPi));
  return frequency;
}

/// Writes complex numbers as the compound {r, i} that h5py reads as complex.
void write_complex(const std::vector<std::complex<double>>& values,
                   const std::vector<std::int64_t>& shape, const std::string& path, H5Writer& out) {
  const H5Handle type(H5Tcreate(H5T_COMPOUND, sizeof(std::complex<double>)), H5Tclose);
  H5Tinsert(type.id(), "r", 0, H5T_NATIVE_DOUBLE);
  H5Tinsert(type.id(), "i", sizeof(double), H5T_NATIVE_DOUBLE);
  const std::vector<hsize_t> extent(shape.begin(), shape.end());
  const H5Handle space(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
                       H5Sclose);
  const H5Handle dataset(H5Dcreate2(out.id(), path.c_str(), type.id(), space.id(), H5P_DEFAULT,
                                    H5P_DEFAULT, H5P_DEFAULT),
                         H5Dclose);
  if (dataset.id() < 0 ||
      H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
    throw StorageError("cannot write dataset '" + path + "'");
  out.attribute(path, "units", "1");
}

void write_mesh(const QMesh& mesh, H5Writer& out) {
  out.write("/mesh", std::vector<std::int64_t>{mesh.n[0], mesh.n[1], mesh.n[2]}, {3}, "1");
}

/// Writes the modes of the whole mesh.
void write_phonons(const Deck& deck, const Modes& modes, const std::filesystem::path& directory) {
  const double mib = 16.0 * static_cast<double>(modes.eigenvector.size()) / 1048576.0;
  if (mib > deck.control.eigenvector_limit_mib) return;
  const QMesh& mesh = deck.symmetry.mesh;
  const auto nb = static_cast<std::size_t>(modes.n_branches);
  std::vector<std::int64_t> address;
  std::vector<std::complex<double>> vectors(modes.eigenvector.size());
  for (std::int64_t q = 0; q < modes.n_q; ++q) {
    int c[3];
    mesh.coordinates(q, c);
    address.insert(address.end(), {c[0], c[1], c[2]});
    const auto at = static_cast<std::size_t>(q) * nb * nb;
    for (std::size_t s = 0; s < nb; ++s)
      for (std::size_t x = 0; x < nb; ++x) {
        double turns = 0.0;  // q·r_κ / 2π
        for (std::size_t d = 0; d < 3; ++d)
          turns += static_cast<double>(c[d]) / mesh.n[d] * deck.crystal.position[x / 3][d];
        vectors[at + x * nb + s] =
            modes.eigenvector[at + s * nb + x] * std::polar(1.0, -2.0 * units::kPi * turns);
      }
  }
  const auto& n = mesh.n;
  H5Writer out(directory / ("phonon-m" + std::to_string(n[0]) + std::to_string(n[1]) +
                            std::to_string(n[2]) + ".hdf5"));
  write_mesh(mesh, out);
  out.write("/grid_address", address, {modes.n_q, 3}, "1");
  out.write("/frequency", in_thz(modes.omega_rad_ps), {modes.n_q, modes.n_branches}, "THz");
  write_complex(vectors, {modes.n_q, modes.n_branches, modes.n_branches}, "/eigenvector", out);
  out.commit();
}

/// Writes the Grüneisen parameters of the irreducible modes.
void write_gruneisen(const Deck& deck, const SolvedCase& solved,
                     const std::filesystem::path& directory) {
  if (!solved.derived || solved.derived->gruneisen.empty()) return;
  const Modes& modes = solved.run.modes;
  const QMesh& mesh = deck.symmetry.mesh;
  std::vector<double> qpoint, omega;
  std::vector<std::int64_t> weight;
  for (std::size_t i = 0; i < deck.symmetry.irreducible.size(); ++i) {
    const std::int32_t point = deck.symmetry.irreducible[i];
    weight.push_back(deck.symmetry.multiplicity[i]);
    int c[3];
    mesh.coordinates(point, c);
    for (int d = 0; d < 3; ++d) {
      const double q = static_cast<double>(c[d]) / mesh.n[d];
      qpoint.push_back(q > 0.5 ? q - 1.0 : q);
    }
    for (std::int64_t s = 0; s < modes.n_branches; ++s)
      omega.push_back(modes.omega_rad_ps[static_cast<std::size_t>(point * modes.n_branches + s)]);
  }
  const std::int64_t n_irr = deck.symmetry.n_irreducible();
  H5Writer out(directory / "gruneisen.hdf5");
  write_mesh(mesh, out);
  out.write("/qpoint", qpoint, {n_irr, 3}, "1");
  out.write("/weight", weight, {n_irr}, "1");
  out.write("/frequency", in_thz(omega), {n_irr, modes.n_branches}, "THz");
  out.write("/gruneisen", solved.derived->gruneisen, {n_irr, modes.n_branches}, "1");
  out.commit();
}

/// Writes the dispersion. Every segment has the same number of points.
void write_band(const Deck& deck, const std::filesystem::path& directory) {
  if (deck.control.path.vertices.empty()) return;
  const Dispersion d = dispersion_along(deck.control.path, deck.crystal, deck.second_order,
                                        deck.control.harmonic_options());
  const std::int64_t segments = d.segment.back() + 1, points = d.n_points() / segments;
  std::vector<double> path, distance, velocity;
  for (const Vec3& q : d.q_fractional) path.insert(path.end(), q.begin(), q.end());
  for (const double x : d.distance_per_nm) distance.push_back(x / kPhonopyLength);
  for (const double v : d.velocity_km_s) velocity.push_back(kThzAngstrom * v);
  H5Writer out(directory / "band.hdf5");
  out.write("/nqpoint", std::vector<std::int64_t>{d.n_points()}, {1}, "1");
  out.write("/segment_nqpoint",
            std::vector<std::int64_t>(static_cast<std::size_t>(segments), points), {segments}, "1");
  out.write("/path", path, {segments, points, 3}, "1");
  out.write("/distance", distance, {segments, points}, "1/angstrom");
  out.write("/frequency", in_thz(d.omega_rad_ps), {segments, points, d.n_branches}, "THz");
  out.write("/group_velocity", velocity, {segments, points, d.n_branches, 3}, "THz angstrom");
  out.commit();
}

}  // namespace

void write_phonopy_files(const Deck& deck, const SolvedCase& solved,
                         const std::filesystem::path& directory) {
  write_phonons(deck, solved.run.modes, directory);
  write_gruneisen(deck, solved, directory);
  write_band(deck, directory);
}

}  // namespace quasi::thermal
