#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/gw/input/fortran_file.hpp"
#include "workers/gw/input/header_checks.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/input/spinors/magnetisation.hpp"
#include "workers/io/input_path.hpp"

// Reads the binary files of BerkeleyGW: WFN, RHO, VXC, VSC and VKB (docs/theory/gw.md 1.1, 1.2).
namespace quasi::gw {
namespace {

constexpr std::int64_t kMaxRecords = 100000;

Mat3 take_matrix(FortranRecord& record) {
  Mat3 m{};
  for (Vec3& row : m)
    for (double& value : row) value = record.take<double>();
  return m;
}

struct Title {
  std::string kind;
  bool is_real = false;
};

Title read_title(FortranReader& file, std::string* text) {
  FortranRecord record = file.record("title");
  *text = record.text(32);
  record.text(64);
  record.finish();
  const auto dash = text->find('-');
  const std::string flavour = dash == std::string::npos ? "" : text->substr(dash + 1);
  if (flavour != "Complex" && flavour != "Real")
    throw InvalidInput("'" + file.path().string() + "': title is '" + *text +
                       "'; expected WFN-, RHO-, VXC-, VSC- or VKB- followed by Complex or Real");
  return {text->substr(0, dash), flavour == "Real"};
}

void require_kind(const Title& title, const std::vector<std::string>& accepted,
                  const FortranReader& file) {
  if (std::find(accepted.begin(), accepted.end(), title.kind) != accepted.end()) return;
  std::string list;
  for (const auto& name : accepted) list += (list.empty() ? "" : " or ") + name;
  throw InvalidInput("'" + file.path().string() + "' is a " + title.kind + " file; a " + list +
                     " file is needed here");
}

/// Counts of record 2, in the order in which every header holds them.
struct Counts {
  int n_spins = 1, n_g = 0, n_symmetries = 0, cell_symmetry = 0, n_atoms = 0;
  int n_spinor = 1;  ///< 2 in files with nspin = 4, which have one spin
};

Counts take_counts(FortranRecord& record, const std::string& file) {
  const auto v = record.take<std::int32_t>(5);
  const bool spinors = v[0] == 4;
  if (!spinors) require_in_range(v[0], 1, 2, "number of spins", file);
  require_in_range(v[1], 1, kMaxPlaneWaves, "number of G-vectors", file);
  require_in_range(v[2], 1, kMaxSymmetries, "number of symmetry operations", file);
  require_in_range(v[4], 1, kMaxAtoms, "number of atoms", file);
  return {spinors ? 1 : v[0], v[1], v[2], v[3], v[4], spinors ? 2 : 1};
}

void refuse_projectors_of_spinors(const Counts& counts, const std::string& file) {
  if (counts.n_spinor == 2)
    throw InvalidInput("'" + file +
                       "' holds projectors of spinors (nspin = 4), which are not supported; leave "
                       "out meanfield.vsc and vkb, and give wfnq for the limit q → 0");
}

/// Records 4 to 8: cell, reciprocal cell, group, translations, atoms.
void read_crystal(FortranReader& file, const Counts& counts, Crystal* crystal) {
  FortranRecord cell = file.record("cell");
  crystal->volume_bohr3 = cell.take<double>();
  crystal->alat_bohr = cell.take<double>();
  crystal->avec = take_matrix(cell);
  crystal->adot = take_matrix(cell);
  cell.finish();
  FortranRecord reciprocal = file.record("reciprocal cell");
  crystal->recvol_per_bohr3 = reciprocal.take<double>();
  crystal->blat_per_bohr = reciprocal.take<double>();
  crystal->bvec = take_matrix(reciprocal);
  crystal->bdot = take_matrix(reciprocal);
  reciprocal.finish();
  const auto rotations = file.values<std::int32_t>(9 * counts.n_symmetries, "symmetry operations");
  const auto translations = file.values<double>(3 * counts.n_symmetries, "fractional translations");
  crystal->symmetries.resize(static_cast<std::size_t>(counts.n_symmetries));
  for (std::size_t s = 0; s < crystal->symmetries.size(); ++s)
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t i = 0; i < 3; ++i)
        crystal->symmetries[s].rotation[i][j] = rotations[9 * s + 3 * j + i];
      crystal->symmetries[s].translation[j] = translations[3 * s + j];
    }
  FortranRecord atoms = file.record("atoms");
  for (int a = 0; a < counts.n_atoms; ++a) {
    Atom atom;
    for (double& x : atom.position_alat) x = atoms.take<double>();
    atom.atomic_number = atoms.take<std::int32_t>();
    crystal->atoms.push_back(atom);
  }
  atoms.finish();
  crystal->cell_symmetry = counts.cell_symmetry;
}

int record_count(FortranReader& file, const std::string& what) {
  const int n = file.values<std::int32_t>(1, "number of records of " + what)[0];
  require_in_range(n, 1, kMaxRecords, "number of records of " + what, file.path().string());
  return n;
}

std::vector<IVec3> read_g_list(FortranReader& file, std::int64_t expected,
                               const std::string& what) {
  std::vector<IVec3> list;
  list.reserve(static_cast<std::size_t>(expected));
  const int n_records = record_count(file, what);
  for (int r = 0; r < n_records; ++r) {
    const int n = file.values<std::int32_t>(1, "length of a part of " + what)[0];
    require_in_range(n, 0, expected - static_cast<std::int64_t>(list.size()),
                     "length of a part of " + what, file.path().string());
    const auto flat = file.values<std::int32_t>(std::int64_t{3} * n, what);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
      list.push_back({flat[3 * i], flat[3 * i + 1], flat[3 * i + 2]});
  }
  if (static_cast<std::int64_t>(list.size()) != expected)
    throw InvalidInput("'" + file.path().string() + "': " + what + " holds " +
                       std::to_string(list.size()) + " vectors, the header announces " +
                       std::to_string(expected));
  return list;
}

/// One data block: `expected` values for each of n_columns columns (spins, or components of
/// spinors). 0: as many columns as the first record holds.
std::vector<std::vector<Cplx>> read_data(FortranReader& file, std::int64_t expected, int n_columns,
                                         bool is_real, const std::string& what) {
  std::vector<std::vector<Cplx>> columns(static_cast<std::size_t>(std::max(1, n_columns)));
  const int n_records = record_count(file, what);
  for (int r = 0; r < n_records; ++r) {
    const int n = file.values<std::int32_t>(1, "length of a part of " + what)[0];
    require_in_range(n, 0, expected - static_cast<std::int64_t>(columns[0].size()),
                     "length of a part of " + what, file.path().string());
    FortranRecord record = file.record(what);
    if (n_columns == 0 && r == 0)
      columns.resize(components_in(record.size(), std::int64_t{is_real ? 8 : 16} * n,
                                   "'" + file.path().string() + "': " + what));
    for (auto& column : columns) {
      if (is_real) {
        for (const double value : record.take<double>(n)) column.emplace_back(value, 0.0);
      } else {
        const auto values = record.take<Cplx>(n);
        column.insert(column.end(), values.begin(), values.end());
      }
    }
    record.finish();
  }
  for (const auto& column : columns) {
    if (static_cast<std::int64_t>(column.size()) != expected)
      throw InvalidInput("'" + file.path().string() + "': " + what + " holds " +
                         std::to_string(column.size()) + " values, " + std::to_string(expected) +
                         " are expected");
    require_finite(column, what + ": value", file.path().string());
  }
  return columns;
}

IVec3 take_ivec3(FortranRecord& record) {
  return {record.take<std::int32_t>(), record.take<std::int32_t>(), record.take<std::int32_t>()};
}

std::vector<int> to_int(const std::vector<std::int32_t>& values) {
  return {values.begin(), values.end()};
}

std::vector<Vec3> to_vec3(const std::vector<double>& flat) {
  std::vector<Vec3> points(flat.size() / 3);
  for (std::size_t i = 0; i < points.size(); ++i)
    points[i] = {flat[3 * i], flat[3 * i + 1], flat[3 * i + 2]};
  return points;
}

/// Passes over a data block that read_data() would read.
void skip_data(FortranReader& file, const std::string& what) {
  const int n_records = record_count(file, what);
  for (int r = 0; r < n_records; ++r) {
    file.skip("length of a part of " + what);
    file.skip(what);
  }
}

/// Reads the plane waves of one k-point into `w`, and its states into `states` or, if that is null,
/// into `w`.
void read_point(FortranReader& file, int ik, std::int64_t n_pw, StateFile* states,
                Wavefunctions& w) {
  const std::string at = " of k-point " + std::to_string(ik + 1), name = file.path().string();
  const std::int64_t n_spins = w.header.n_spins,
                     known = states != nullptr ? states->bands_written(ik) : 0;
  KPointWaves waves;
  waves.g = read_g_list(file, n_pw, "G-list" + at);
  std::vector<std::vector<Cplx>> in_memory(static_cast<std::size_t>(n_spins));
  for (int band = 0; band < w.n_bands; ++band) {
    const std::string what = "band " + std::to_string(band + 1) + at;
    if ((band + 1) * n_spins <= known) {
      skip_data(file, what);
      continue;
    }
    auto columns =
        read_data(file, n_pw, w.header.n_spins * w.header.n_spinor, w.header.is_real, what);
    if (w.header.n_spinor == 2) {  // a state is the component ↑, then ↓
      columns[0].insert(columns[0].end(), columns[1].begin(), columns[1].end());
      columns.resize(1);
    }
    for (std::size_t s = 0; s < columns.size(); ++s) {
      if (states == nullptr) {
        in_memory[s].insert(in_memory[s].end(), columns[s].begin(), columns[s].end());
        continue;
      }
      check_norm(columns[s], band, ik, name);
      states->write(ik, static_cast<int>(s), band, columns[s]);
    }
  }
  if (states == nullptr)
    for (auto& spin : in_memory) waves.coefficients.emplace_back(std::move(spin));
  else if (known < states->bands_of_point())
    states->finish_point(ik);
  w.waves.push_back(std::move(waves));
}

Wavefunctions read_wavefunctions_binary(const std::filesystem::path& path,
                                        const StateStorage& storage) {
  FortranReader file(path);
  Wavefunctions w;
  const Title title = read_title(file, &w.header.title);
  require_kind(title, {"WFN"}, file);
  w.header.is_real = title.is_real;
  const std::string name = path.string();

  FortranRecord sizes = file.record("counts");
  const Counts counts = take_counts(sizes, name);
  w.header.n_spins = counts.n_spins;
  w.header.n_spinor = counts.n_spinor;
  w.header.density_cutoff_ry = sizes.take<double>();
  const int n_k = sizes.take<std::int32_t>();
  w.n_bands = sizes.take<std::int32_t>();
  const int max_pw = sizes.take<std::int32_t>();
  w.wavefunction_cutoff_ry = sizes.take<double>();
  sizes.finish();
  require_in_range(n_k, 1, kMaxKPoints, "number of k-points", name);
  require_in_range(w.n_bands, 1, kMaxBands, "number of bands", name);
  require_in_range(max_pw, 1, counts.n_g, "largest number of plane waves (ngkmax)", name);

  FortranRecord grids = file.record("FFT grid and k-grid");
  w.header.fft_grid = take_ivec3(grids);
  w.k_grid = take_ivec3(grids);
  for (double& x : w.k_shift) x = grids.take<double>();
  grids.finish();
  read_crystal(file, counts, &w.header.crystal);

  const std::int64_t n_bk = std::int64_t{1} * w.n_bands * n_k * counts.n_spins;
  const auto n_pw = file.values<std::int32_t>(n_k, "plane waves per k-point");
  w.weight = file.values<double>(n_k, "k-point weights");
  w.k = to_vec3(file.values<double>(3 * n_k, "k-points"));
  w.first_occupied =
      to_int(file.values<std::int32_t>(n_k * counts.n_spins, "lowest occupied bands"));
  w.last_occupied =
      to_int(file.values<std::int32_t>(n_k * counts.n_spins, "highest occupied bands"));
  w.energy_ry = file.values<double>(n_bk, "band energies");
  w.occupation = file.values<double>(n_bk, "occupations");
  w.header.g = read_g_list(file, counts.n_g, "master G-list");
  check_header(w.header, name);

  for (int ik = 0; ik < n_k; ++ik)
    require_in_range(n_pw[static_cast<std::size_t>(ik)], 1, max_pw,
                     "number of plane waves of k-point " + std::to_string(ik + 1), name);
  std::vector<std::int64_t> rows(n_pw.begin(), n_pw.end());
  for (std::int64_t& row : rows) row *= w.header.n_spinor;
  const auto states = state_file_for(storage, path, w, rows);
  for (int ik = 0; ik < n_k; ++ik)
    read_point(file, ik, n_pw[static_cast<std::size_t>(ik)], states.get(), w);
  if (states != nullptr) take_mapped(*states, w);
  check_wavefunctions(w, name);
  return w;
}

}  // namespace

Wavefunctions read_wavefunctions_hdf5(const std::filesystem::path& path,
                                      const StateStorage& storage);

Wavefunctions read_wavefunctions(const std::filesystem::path& path, const StateStorage& storage) {
  std::ifstream in(input_file(path), std::ios::binary);
  char magic[8] = {};
  in.read(magic, sizeof magic);
  if (in && std::string_view(magic + 1, 3) == "HDF") return read_wavefunctions_hdf5(path, storage);
  return read_wavefunctions_binary(path, storage);
}

PlaneWaveField read_field(const std::filesystem::path& path, const std::string& kind) {
  FortranReader file(path);
  PlaneWaveField field;
  const Title title = read_title(file, &field.header.title);
  require_kind(
      title,
      kind == "RHO" ? std::vector<std::string>{"RHO"} : std::vector<std::string>{"VXC", "VSC"},
      file);
  field.header.is_real = title.is_real;
  const std::string name = path.string();
  FortranRecord sizes = file.record("counts");
  const Counts counts = take_counts(sizes, name);
  field.header.n_spins = counts.n_spins;
  field.header.density_cutoff_ry = sizes.take<double>();
  sizes.finish();
  FortranRecord grid = file.record("FFT grid");
  field.header.fft_grid = take_ivec3(grid);
  grid.finish();
  read_crystal(file, counts, &field.header.crystal);
  field.header.g = read_g_list(file, counts.n_g, "master G-list");
  check_header(field.header, name);
  field.header.n_spinor = counts.n_spinor;
  const int n_columns = counts.n_spinor == 2 ? 0 : counts.n_spins;  // with or without magnetism
  field.values = read_data(file, counts.n_g, n_columns, title.is_real, kind + " data");
  if (n_columns == 0) field.values = without_magnetisation(std::move(field.values), name);
  return field;
}

Projectors read_projectors(const std::filesystem::path& path) {
  FortranReader file(path);
  Projectors p;
  const Title title = read_title(file, &p.header.title);
  require_kind(title, {"VKB"}, file);
  const std::string name = path.string();
  FortranRecord sizes = file.record("counts");
  const Counts counts = take_counts(sizes, name);
  p.header.n_spins = counts.n_spins;
  refuse_projectors_of_spinors(counts, name);
  p.header.density_cutoff_ry = sizes.take<double>();
  const int n_k = sizes.take<std::int32_t>();
  const int n_species = sizes.take<std::int32_t>();
  p.n_projectors = sizes.take<std::int32_t>();
  p.max_projectors = sizes.take<std::int32_t>();
  const int max_pw = sizes.take<std::int32_t>();
  p.wavefunction_cutoff_ry = sizes.take<double>();
  sizes.finish();
  require_in_range(n_k, 1, kMaxKPoints, "number of k-points", name);
  require_in_range(n_species, 1, counts.n_atoms, "number of species", name);
  require_in_range(p.n_projectors, 0, 100 * counts.n_atoms, "number of projectors", name);
  require_in_range(p.max_projectors, 0, 100, "largest number of projectors of a species", name);
  require_in_range(max_pw, 1, counts.n_g, "largest number of plane waves (ngkmax)", name);
  FortranRecord grids = file.record("FFT grid and k-grid");
  p.header.fft_grid = take_ivec3(grids);
  take_ivec3(grids);
  grids.take<double>(3);
  grids.finish();
  read_crystal(file, counts, &p.header.crystal);
  const auto n_pw = file.values<std::int32_t>(n_k, "plane waves per k-point");
  file.values<double>(n_k, "k-point weights");
  p.k = to_vec3(file.values<double>(3 * n_k, "k-points"));
  p.species = to_int(file.values<std::int32_t>(counts.n_atoms, "species of the atoms"));
  p.projectors_of_species = to_int(file.values<std::int32_t>(n_species, "projectors per species"));
  for (const int n : p.projectors_of_species)
    require_in_range(n, 0, p.max_projectors, "number of projectors of a species", name);
  for (const int s : p.species) require_in_range(s, 0, n_species, "species of an atom", name);
  const int base = *std::min_element(p.species.begin(), p.species.end());
  int n_projectors = 0;
  for (int& s : p.species) {
    s -= base;
    require_in_range(s, 0, n_species - 1, "species of an atom, counted from 0,", name);
    n_projectors += p.projectors_of_species[static_cast<std::size_t>(s)];
  }
  if (n_projectors != p.n_projectors)
    throw InvalidInput("'" + name + "' announces " + std::to_string(p.n_projectors) +
                       " projectors but its atoms have " + std::to_string(n_projectors));
  p.d_ry = file.values<double>(
      std::int64_t{1} * p.max_projectors * p.max_projectors * counts.n_atoms * counts.n_spins,
      "D matrices");
  require_finite(p.d_ry, "D matrix element", name);
  p.header.g = read_g_list(file, counts.n_g, "master G-list");
  check_header(p.header, name);
  for (int ik = 0; ik < n_k; ++ik) {
    const std::string at = " of k-point " + std::to_string(ik + 1);
    const std::int64_t n = n_pw[static_cast<std::size_t>(ik)];
    require_in_range(n, 1, max_pw, "number of plane waves" + at, name);
    p.g.push_back(read_g_list(file, n, "G-list" + at));
    check_g_list(p.g.back(), p.header.fft_grid, at, name);
    std::vector<Cplx> beta;
    for (int spin = 0; spin < counts.n_spins; ++spin)
      for (int j = 0; j < p.n_projectors; ++j) {
        const auto column = read_data(file, n, 1, false, "projector " + std::to_string(j + 1) + at);
        beta.insert(beta.end(), column[0].begin(), column[0].end());
      }
    p.beta.push_back(std::move(beta));
  }
  return p;
}

}  // namespace quasi::gw
