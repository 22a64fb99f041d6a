#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/gw/input/fortran_file.hpp"
#include "workers/gw/input/mean_field_files.hpp"

// Writes the binary files of BerkeleyGW: WFN, RHO, VXC, VSC and VKB (docs/theory/gw.md 1.1, 1.2).
namespace quasi::gw {
namespace {

template <typename Integer>
std::int32_t to_int32(Integer value) {
  return static_cast<std::int32_t>(value);
}

void put_matrix(FortranWriter& file, const Mat3& m) {
  for (const Vec3& row : m)
    for (const double value : row) file.put(value);
}

void write_crystal(FortranWriter& file, const Crystal& crystal) {
  file.put(crystal.volume_bohr3).put(crystal.alat_bohr);
  put_matrix(file, crystal.avec);
  put_matrix(file, crystal.adot);
  file.end_record();
  file.put(crystal.recvol_per_bohr3).put(crystal.blat_per_bohr);
  put_matrix(file, crystal.bvec);
  put_matrix(file, crystal.bdot);
  file.end_record();
  for (const SymmetryOperation& s : crystal.symmetries)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i) file.put(static_cast<std::int32_t>(s.rotation[i][j]));
  file.end_record();
  for (const SymmetryOperation& s : crystal.symmetries)
    for (const double t : s.translation) file.put(t);
  file.end_record();
  for (const Atom& atom : crystal.atoms) {
    for (const double x : atom.position_alat) file.put(x);
    file.put(static_cast<std::int32_t>(atom.atomic_number));
  }
  file.end_record();
}

void write_title(FortranWriter& file, const std::string& kind, bool is_real) {
  file.text(kind + (is_real ? "-Real" : "-Complex"), 32).text("", 64).end_record();
}

void write_g_list(FortranWriter& file, const std::vector<IVec3>& list) {
  file.put(std::int32_t{1}).end_record();
  file.put(static_cast<std::int32_t>(list.size())).end_record();
  for (const IVec3& g : list)
    for (const int x : g) file.put(static_cast<std::int32_t>(x));
  file.end_record();
}

/// One data block of `count` values from each column.
void write_data(FortranWriter& file, const std::vector<const Cplx*>& columns, std::size_t count,
                bool is_real) {
  file.put(std::int32_t{1}).end_record();
  file.put(static_cast<std::int32_t>(count)).end_record();
  for (const Cplx* column : columns) {
    if (!is_real) {
      file.put(std::span<const Cplx>(column, count));
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (std::abs(column[i].imag()) > 1e-8)
        throw InvalidInput("a coefficient has the imaginary part " +
                           std::to_string(column[i].imag()) + "; it cannot be written as real");
      file.put(column[i].real());
    }
  }
  file.end_record();
}

/// Begins the record of counts: spins (4 for spinors), plane waves, operations, lattice type, atoms
/// and cut-off.
void put_counts(FortranWriter& file, const MeanFieldHeader& header) {
  file.put(to_int32(header.n_spinor == 2 ? 4 : header.n_spins))
      .put(to_int32(header.g.size()))
      .put(to_int32(header.crystal.symmetries.size()))
      .put(to_int32(header.crystal.cell_symmetry))
      .put(to_int32(header.crystal.atoms.size()))
      .put(header.density_cutoff_ry);
}

std::vector<std::int32_t> to_int32(const std::vector<int>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

void write_wavefunctions(const std::filesystem::path& path, const Wavefunctions& w) {
  FortranWriter file(path);
  const bool is_real = w.header.is_real;
  write_title(file, "WFN", is_real);
  std::size_t max_pw = 0;
  for (const KPointWaves& waves : w.waves) max_pw = std::max(max_pw, waves.g.size());
  put_counts(file, w.header);
  file.put(to_int32(w.n_k()))
      .put(to_int32(w.n_bands))
      .put(to_int32(max_pw))
      .put(w.wavefunction_cutoff_ry);
  file.end_record();
  for (const int n : w.header.fft_grid) file.put(to_int32(n));
  for (const int n : w.k_grid) file.put(to_int32(n));
  for (const double x : w.k_shift) file.put(x);
  file.end_record();
  write_crystal(file, w.header.crystal);
  for (const KPointWaves& waves : w.waves) file.put(to_int32(waves.g.size()));
  file.end_record();
  file.put(w.weight).end_record();
  for (const Vec3& k : w.k)
    for (const double x : k) file.put(x);
  file.end_record();
  file.put(to_int32(w.first_occupied)).end_record();
  file.put(to_int32(w.last_occupied)).end_record();
  file.put(w.energy_ry).end_record();
  file.put(w.occupation).end_record();
  write_g_list(file, w.header.g);
  for (const KPointWaves& waves : w.waves) {
    write_g_list(file, waves.g);
    for (int band = 0; band < w.n_bands; ++band) {
      std::vector<const Cplx*> columns;
      for (const auto& c : waves.coefficients)
        for (int component = 0; component < w.header.n_spinor; ++component)
          columns.push_back(c.data() +
                            static_cast<std::size_t>(band * w.header.n_spinor + component) *
                                waves.g.size());
      write_data(file, columns, waves.g.size(), is_real);
    }
  }
  file.commit();
}

void write_field(const std::filesystem::path& path, const PlaneWaveField& field) {
  FortranWriter file(path);
  const std::string kind = field.header.title.substr(0, 3);
  write_title(file, kind, field.header.is_real);
  put_counts(file, field.header);
  file.end_record();
  for (const int n : field.header.fft_grid) file.put(to_int32(n));
  file.end_record();
  write_crystal(file, field.header.crystal);
  write_g_list(file, field.header.g);
  std::vector<const Cplx*> columns;
  for (const auto& c : field.values) columns.push_back(c.data());
  write_data(file, columns, field.header.g.size(), field.header.is_real);
  file.commit();
}

void write_projectors(const std::filesystem::path& path, const Projectors& p) {
  FortranWriter file(path);
  write_title(file, "VKB", false);
  put_counts(file, p.header);
  std::size_t max_pw = 0;
  for (const auto& list : p.g) max_pw = std::max(max_pw, list.size());
  file.put(to_int32(p.k.size()))
      .put(to_int32(p.projectors_of_species.size()))
      .put(to_int32(p.n_projectors))
      .put(to_int32(p.max_projectors))
      .put(to_int32(max_pw))
      .put(p.wavefunction_cutoff_ry);
  file.end_record();
  for (const int n : p.header.fft_grid) file.put(to_int32(n));
  for (int axis = 0; axis < 3; ++axis) file.put(std::int32_t{0});
  for (int axis = 0; axis < 3; ++axis) file.put(0.0);
  file.end_record();
  write_crystal(file, p.header.crystal);
  for (const auto& list : p.g) file.put(to_int32(list.size()));
  file.end_record();
  file.put(std::vector<double>(p.k.size(), 1.0 / static_cast<double>(p.k.size()))).end_record();
  for (const Vec3& k : p.k)
    for (const double x : k) file.put(x);
  file.end_record();
  for (const int species : p.species) file.put(to_int32(species + 1));
  file.end_record();
  file.put(to_int32(p.projectors_of_species)).end_record();
  file.put(p.d_ry).end_record();
  write_g_list(file, p.header.g);
  for (std::size_t ik = 0; ik < p.k.size(); ++ik) {
    const std::size_t n = p.g[ik].size();
    write_g_list(file, p.g[ik]);
    for (std::size_t j = 0; j < p.beta[ik].size() / n; ++j)
      write_data(file, {p.beta[ik].data() + j * n}, n, false);
  }
  file.commit();
}

}  // namespace quasi::gw
