#include <algorithm>
#include <limits>
#include <numeric>

#include "workers/backend/error.hpp"
#include "workers/gw/input/hdf5_header.hpp"
#include "workers/gw/input/header_checks.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/io/hdf5.hpp"

// Reads WFN.h5 and the /mf_header that every HDF5 file of BerkeleyGW repeats (docs/theory/gw.md
// 1.4).
namespace quasi::gw {
namespace {

Mat3 read_matrix(const H5Reader& file, const std::string& path, const std::string& name) {
  const auto flat = file.doubles(path);
  if (flat.size() != 9) throw InvalidInput("'" + name + "': " + path + " must be 3 × 3");
  Mat3 m{};
  for (std::size_t i = 0; i < 9; ++i) m[i / 3][i % 3] = flat[i];
  return m;
}

/// Converts a 64-bit integer of a file. A value beyond 32 bits is damage and must not be cut to a
/// plausible number.
int to_int(std::int64_t value, const std::string& path, const std::string& name) {
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    throw InvalidInput("'" + name + "': " + path + " holds " + std::to_string(value) +
                       ", beyond 32 bits; is the file damaged?");
  return static_cast<int>(value);
}

std::vector<int> read_ints(const H5Reader& file, const std::string& path, const std::string& name) {
  std::vector<int> narrow;
  for (const std::int64_t value : file.integers(path)) narrow.push_back(to_int(value, path, name));
  return narrow;
}

IVec3 read_ivec3(const H5Reader& file, const std::string& path, const std::string& name) {
  const auto v = read_ints(file, path, name);
  if (v.size() != 3) throw InvalidInput("'" + name + "': " + path + " must hold 3 integers");
  return {v[0], v[1], v[2]};
}

void require_size(std::size_t size, std::int64_t expected, const std::string& path,
                  const std::string& name) {
  if (static_cast<std::int64_t>(size) != expected)
    throw InvalidInput("'" + name + "': " + path + " holds " + std::to_string(size) +
                       " values, the header announces " + std::to_string(expected));
}

std::vector<IVec3> read_g(const H5Reader& file, const std::string& path, std::int64_t expected,
                          const std::string& name) {
  const auto flat = file.integers(path);
  require_size(flat.size(), 3 * expected, path, name);
  std::vector<IVec3> g(static_cast<std::size_t>(expected));
  for (std::size_t i = 0; i < g.size(); ++i)
    for (std::size_t j = 0; j < 3; ++j) g[i][j] = to_int(flat[3 * i + j], path, name);
  return g;
}

std::vector<double> flattened(const Mat3& m) {
  std::vector<double> flat;
  for (const Vec3& row : m) flat.insert(flat.end(), row.begin(), row.end());
  return flat;
}

void write_int(H5Writer& file, const std::string& path, std::int64_t value) {
  file.write(path, std::vector<std::int32_t>{static_cast<std::int32_t>(value)}, {}, "1");
}

std::vector<std::int32_t> flat_g(const std::vector<IVec3>& g) {
  std::vector<std::int32_t> flat;
  for (const IVec3& v : g) flat.insert(flat.end(), v.begin(), v.end());
  return flat;
}

}  // namespace

MeanFieldHeader read_hdf5_header(const H5Reader& file, const std::string& name) {
  MeanFieldHeader h;
  const std::int64_t flavour = file.integer("/mf_header/flavor");
  require_in_range(flavour, 1, 2, "/mf_header/flavor", name);
  h.is_real = flavour == 1;
  h.title = h.is_real ? "WFN-Real" : "WFN-Complex";
  h.n_spinor =
      to_int(file.integer("/mf_header/kpoints/nspinor"), "/mf_header/kpoints/nspinor", name);
  require_in_range(h.n_spinor, 1, 2, "number of components of a state (nspinor)", name);
  h.n_spins = to_int(file.integer("/mf_header/kpoints/nspin"), "/mf_header/kpoints/nspin", name);
  require_in_range(h.n_spins, 1, 3 - h.n_spinor, "number of spins", name);
  Crystal& c = h.crystal;
  c.volume_bohr3 = file.number("/mf_header/crystal/celvol");
  c.recvol_per_bohr3 = file.number("/mf_header/crystal/recvol");
  c.alat_bohr = file.number("/mf_header/crystal/alat");
  c.blat_per_bohr = file.number("/mf_header/crystal/blat");
  c.avec = read_matrix(file, "/mf_header/crystal/avec", name);
  c.bvec = read_matrix(file, "/mf_header/crystal/bvec", name);
  c.adot = read_matrix(file, "/mf_header/crystal/adot", name);
  c.bdot = read_matrix(file, "/mf_header/crystal/bdot", name);
  const std::int64_t n_atoms = file.integer("/mf_header/crystal/nat");
  require_in_range(n_atoms, 1, kMaxAtoms, "number of atoms", name);
  const auto types = file.integers("/mf_header/crystal/atyp");
  const auto positions = file.doubles("/mf_header/crystal/apos");
  require_size(types.size(), n_atoms, "/mf_header/crystal/atyp", name);
  require_size(positions.size(), 3 * n_atoms, "/mf_header/crystal/apos", name);
  for (std::size_t a = 0; a < types.size(); ++a)
    c.atoms.push_back({{positions[3 * a], positions[3 * a + 1], positions[3 * a + 2]},
                       to_int(types[a], "/mf_header/crystal/atyp", name)});

  const std::int64_t n_sym = file.integer("/mf_header/symmetry/ntran");
  require_in_range(n_sym, 1, kMaxSymmetries, "number of symmetry operations", name);
  c.cell_symmetry = to_int(file.integer("/mf_header/symmetry/cell_symmetry"),
                           "/mf_header/symmetry/cell_symmetry", name);
  const auto rotations = file.integers("/mf_header/symmetry/mtrx");
  const auto translations = file.doubles("/mf_header/symmetry/tnp");
  if (static_cast<std::int64_t>(rotations.size()) < 9 * n_sym ||
      static_cast<std::int64_t>(translations.size()) < 3 * n_sym)
    throw InvalidInput("'" + name + "': /mf_header/symmetry announces " + std::to_string(n_sym) +
                       " operations but holds fewer");
  for (std::size_t s = 0; s < static_cast<std::size_t>(n_sym); ++s) {
    SymmetryOperation op;
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t i = 0; i < 3; ++i)
        op.rotation[i][j] = to_int(rotations[9 * s + 3 * j + i], "/mf_header/symmetry/mtrx", name);
      op.translation[j] = translations[3 * s + j];
    }
    c.symmetries.push_back(op);
  }
  h.density_cutoff_ry = file.number("/mf_header/gspace/ecutrho");
  h.fft_grid = read_ivec3(file, "/mf_header/gspace/FFTgrid", name);
  const std::int64_t n_g = file.integer("/mf_header/gspace/ng");
  require_in_range(n_g, 1, kMaxPlaneWaves, "number of G-vectors", name);
  h.g = read_g(file, "/mf_header/gspace/components", n_g, name);
  check_header(h, name);
  return h;
}

void read_hdf5_bands(const H5Reader& file, const std::string& name, Wavefunctions* w) {
  const std::int64_t n_k = file.integer("/mf_header/kpoints/nrk");
  require_in_range(n_k, 1, kMaxKPoints, "number of k-points", name);
  w->n_bands = to_int(file.integer("/mf_header/kpoints/mnband"), "/mf_header/kpoints/mnband", name);
  require_in_range(w->n_bands, 1, kMaxBands, "number of bands", name);
  w->wavefunction_cutoff_ry = file.number("/mf_header/kpoints/ecutwfc");
  w->k_grid = read_ivec3(file, "/mf_header/kpoints/kgrid", name);
  const auto shift = file.doubles("/mf_header/kpoints/shift");
  require_size(shift.size(), 3, "/mf_header/kpoints/shift", name);
  w->k_shift = {shift[0], shift[1], shift[2]};
  w->weight = file.doubles("/mf_header/kpoints/w");
  require_size(w->weight.size(), n_k, "/mf_header/kpoints/w", name);
  const auto k = file.doubles("/mf_header/kpoints/rk");
  require_size(k.size(), 3 * n_k, "/mf_header/kpoints/rk", name);
  for (std::size_t i = 0; i < static_cast<std::size_t>(n_k); ++i)
    w->k.push_back({k[3 * i], k[3 * i + 1], k[3 * i + 2]});
  w->first_occupied = read_ints(file, "/mf_header/kpoints/ifmin", name);
  w->last_occupied = read_ints(file, "/mf_header/kpoints/ifmax", name);
  w->energy_ry = file.doubles("/mf_header/kpoints/el");
  w->occupation = file.doubles("/mf_header/kpoints/occ");
  const std::int64_t n_sk = n_k * w->header.n_spins;
  require_size(w->first_occupied.size(), n_sk, "/mf_header/kpoints/ifmin", name);
  require_size(w->last_occupied.size(), n_sk, "/mf_header/kpoints/ifmax", name);
  require_size(w->energy_ry.size(), n_sk * w->n_bands, "/mf_header/kpoints/el", name);
  require_size(w->occupation.size(), n_sk * w->n_bands, "/mf_header/kpoints/occ", name);
}

/// Columns of /wfns/coeffs that belong to one k-point.
struct ColumnsOfPoint {
  int spin = 0;
  std::int64_t first = 0, n_pw = 0;
};

/// Reads bands [bands.first, bands.second) of one spin and k-point, [band][n_spinor][n_pw].
std::vector<Cplx> read_bands(const H5Reader& file, const Wavefunctions& w, int ik,
                             const ColumnsOfPoint& at, const std::pair<int, int>& bands,
                             const std::string& name) {
  const std::int64_t parts = w.header.is_real ? 1 : 2;
  const std::int64_t start[] = {bands.first, at.spin, at.first, 0};
  const std::int64_t count[] = {bands.second - bands.first, w.header.n_spinor, at.n_pw, parts};
  const auto flat = file.slab("/wfns/coeffs", start, count);
  std::vector<Cplx> c(flat.size() / static_cast<std::size_t>(parts));
  for (std::size_t i = 0; i < c.size(); ++i)
    c[i] = parts == 1 ? Cplx(flat[i], 0.0) : Cplx(flat[2 * i], flat[2 * i + 1]);
  require_finite(c, "coefficient of k-point " + std::to_string(ik + 1) + ":", name);
  return c;
}

/// Reads the states of one k-point block by block into a state file.
void store_bands(const H5Reader& file, const Wavefunctions& w, int ik, ColumnsOfPoint at,
                 StateFile& states, const std::string& name) {
  constexpr std::int64_t kBlock_bytes = std::int64_t{16} << 20;
  const int step = static_cast<int>(std::max<std::int64_t>(1, kBlock_bytes / (16 * at.n_pw)));
  const auto n = static_cast<std::size_t>(at.n_pw * w.header.n_spinor);
  const std::int64_t known = states.bands_written(ik);
  for (at.spin = 0; at.spin < w.header.n_spins; ++at.spin)
    for (int begin = static_cast<int>(
             std::clamp<std::int64_t>(known - std::int64_t{at.spin} * w.n_bands, 0, w.n_bands));
         begin < w.n_bands; begin += step) {
      const int end = std::min(w.n_bands, begin + step);
      const std::vector<Cplx> block = read_bands(file, w, ik, at, {begin, end}, name);
      for (int band = begin; band < end; ++band)
        check_norm({block.data() + static_cast<std::size_t>(band - begin) * n, n}, band, ik, name);
      states.write(ik, at.spin, begin, block);
    }
  states.finish_point(ik);
}

Wavefunctions read_wavefunctions_hdf5(const std::filesystem::path& path,
                                      const StateStorage& storage) {
  const H5Reader file(path);
  const std::string name = path.string();
  Wavefunctions w;
  w.header = read_hdf5_header(file, name);
  read_hdf5_bands(file, name, &w);
  const auto n_pw = file.integers("/mf_header/kpoints/ngk");
  require_size(n_pw.size(), w.n_k(), "/mf_header/kpoints/ngk", name);
  for (std::size_t ik = 0; ik < n_pw.size(); ++ik)
    require_in_range(n_pw[ik], 1, static_cast<std::int64_t>(w.header.g.size()),
                     "number of plane waves of k-point " + std::to_string(ik + 1), name);
  const std::int64_t total = std::accumulate(n_pw.begin(), n_pw.end(), std::int64_t{0});
  const auto g = read_g(file, "/wfns/gvecs", total, name);
  const std::int64_t parts = w.header.is_real ? 1 : 2;
  const auto shape = file.shape("/wfns/coeffs");
  const std::vector<std::int64_t> expected{w.n_bands, w.header.n_spins * w.header.n_spinor, total,
                                           parts};
  if (shape != expected)
    throw InvalidInput(
        "'" + name +
        "': /wfns/coeffs has another shape than bands × spins × plane waves × parts = " +
        std::to_string(w.n_bands) + " × " + std::to_string(w.header.n_spins * w.header.n_spinor) +
        " × " + std::to_string(total) + " × " + std::to_string(parts));
  std::vector<std::int64_t> rows(n_pw.begin(), n_pw.end());
  for (std::int64_t& row : rows) row *= w.header.n_spinor;
  const auto states = state_file_for(storage, path, w, rows);
  std::int64_t first = 0;
  for (int ik = 0; ik < w.n_k(); ++ik) {
    const std::int64_t n = n_pw[static_cast<std::size_t>(ik)];
    KPointWaves waves;
    waves.g.assign(g.begin() + first, g.begin() + first + n);
    if (states == nullptr)
      for (int spin = 0; spin < w.header.n_spins; ++spin)
        waves.coefficients.emplace_back(read_bands(
            file, w, ik, {.spin = spin, .first = first, .n_pw = n}, {0, w.n_bands}, name));
    else if (states->bands_written(ik) < states->bands_of_point())
      store_bands(file, w, ik, {.spin = 0, .first = first, .n_pw = n}, *states, name);
    first += n;
    w.waves.push_back(std::move(waves));
  }
  if (states != nullptr) take_mapped(*states, w);
  check_wavefunctions(w, name);
  return w;
}

void write_hdf5_header(H5Writer& file, const Wavefunctions& w) {
  const MeanFieldHeader& h = w.header;
  const Crystal& c = h.crystal;
  write_int(file, "/mf_header/versionnumber", 1);
  write_int(file, "/mf_header/flavor", h.is_real ? 1 : 2);
  const std::string k = "/mf_header/kpoints/";
  write_int(file, k + "nspin", h.n_spins);
  write_int(file, k + "nspinor", h.n_spinor);
  write_int(file, k + "nrk", w.n_k());
  write_int(file, k + "mnband", w.n_bands);
  std::vector<std::int32_t> n_pw;
  for (const KPointWaves& waves : w.waves)
    n_pw.push_back(static_cast<std::int32_t>(waves.g.size()));
  write_int(file, k + "ngkmax", *std::max_element(n_pw.begin(), n_pw.end()));
  file.write_scalar(k + "ecutwfc", w.wavefunction_cutoff_ry, "Ry");
  file.write(k + "kgrid", std::vector<std::int32_t>(w.k_grid.begin(), w.k_grid.end()), {3}, "1");
  file.write(k + "shift", std::vector<double>(w.k_shift.begin(), w.k_shift.end()), {3}, "1");
  file.write(k + "ngk", n_pw, {w.n_k()}, "1");
  file.write(k + "ifmin",
             std::vector<std::int32_t>(w.first_occupied.begin(), w.first_occupied.end()),
             {h.n_spins, w.n_k()}, "1");
  file.write(k + "ifmax", std::vector<std::int32_t>(w.last_occupied.begin(), w.last_occupied.end()),
             {h.n_spins, w.n_k()}, "1");
  file.write(k + "w", w.weight, {w.n_k()}, "1");
  std::vector<double> points;
  for (const Vec3& p : w.k) points.insert(points.end(), p.begin(), p.end());
  file.write(k + "rk", points, {w.n_k(), 3}, "1");
  file.write(k + "el", w.energy_ry, {h.n_spins, w.n_k(), w.n_bands}, "Ry");
  file.write(k + "occ", w.occupation, {h.n_spins, w.n_k(), w.n_bands}, "1");
  write_int(file, "/mf_header/gspace/ng", static_cast<std::int64_t>(h.g.size()));
  file.write_scalar("/mf_header/gspace/ecutrho", h.density_cutoff_ry, "Ry");
  file.write("/mf_header/gspace/FFTgrid",
             std::vector<std::int32_t>(h.fft_grid.begin(), h.fft_grid.end()), {3}, "1");
  file.write("/mf_header/gspace/components", flat_g(h.g),
             {static_cast<std::int64_t>(h.g.size()), 3}, "1");
  write_int(file, "/mf_header/symmetry/ntran", static_cast<std::int64_t>(c.symmetries.size()));
  write_int(file, "/mf_header/symmetry/cell_symmetry", c.cell_symmetry);
  std::vector<std::int32_t> rotations(9 * kMaxSymmetries, 0);
  std::vector<double> translations(3 * kMaxSymmetries, 0.0);
  for (std::size_t s = 0; s < c.symmetries.size(); ++s)
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t i = 0; i < 3; ++i)
        rotations[9 * s + 3 * j + i] = c.symmetries[s].rotation[i][j];
      translations[3 * s + j] = c.symmetries[s].translation[j];
    }
  file.write("/mf_header/symmetry/mtrx", rotations, {kMaxSymmetries, 3, 3}, "1");
  file.write("/mf_header/symmetry/tnp", translations, {kMaxSymmetries, 3}, "1");
  file.write_scalar("/mf_header/crystal/celvol", c.volume_bohr3, "bohr^3");
  file.write_scalar("/mf_header/crystal/recvol", c.recvol_per_bohr3, "bohr^-3");
  file.write_scalar("/mf_header/crystal/alat", c.alat_bohr, "bohr");
  file.write_scalar("/mf_header/crystal/blat", c.blat_per_bohr, "bohr^-1");
  write_int(file, "/mf_header/crystal/nat", static_cast<std::int64_t>(c.atoms.size()));
  file.write("/mf_header/crystal/avec", flattened(c.avec), {3, 3}, "alat");
  file.write("/mf_header/crystal/bvec", flattened(c.bvec), {3, 3}, "blat");
  file.write("/mf_header/crystal/adot", flattened(c.adot), {3, 3}, "bohr^2");
  file.write("/mf_header/crystal/bdot", flattened(c.bdot), {3, 3}, "bohr^-2");
  std::vector<std::int32_t> types;
  std::vector<double> positions;
  for (const Atom& atom : c.atoms) {
    types.push_back(atom.atomic_number);
    positions.insert(positions.end(), atom.position_alat.begin(), atom.position_alat.end());
  }
  file.write("/mf_header/crystal/atyp", types, {static_cast<std::int64_t>(types.size())}, "1");
  file.write("/mf_header/crystal/apos", positions, {static_cast<std::int64_t>(types.size()), 3},
             "alat");
}

void write_wavefunctions_hdf5(const std::filesystem::path& path, const Wavefunctions& w) {
  H5Writer file(path);
  write_hdf5_header(file, w);
  std::vector<std::int32_t> g;
  std::int64_t total = 0;
  for (const KPointWaves& waves : w.waves) {
    const auto part = flat_g(waves.g);
    g.insert(g.end(), part.begin(), part.end());
    total += static_cast<std::int64_t>(waves.g.size());
  }
  file.write("/wfns/gvecs", g, {total, 3}, "1");
  std::vector<double> flat;
  for (int band = 0; band < w.n_bands; ++band)
    for (int column = 0; column < w.header.n_spins * w.header.n_spinor; ++column)
      for (const KPointWaves& waves : w.waves)
        for (std::size_t i = 0; i < waves.g.size(); ++i) {
          const auto spin = static_cast<std::size_t>(column / w.header.n_spinor);
          const auto row =
              static_cast<std::size_t>(band * w.header.n_spinor + column % w.header.n_spinor);
          const Cplx c = waves.coefficients[spin][row * waves.g.size() + i];
          flat.push_back(c.real());
          if (!w.header.is_real) flat.push_back(c.imag());
        }
  file.write("/wfns/coeffs", flat,
             {w.n_bands, w.header.n_spins * w.header.n_spinor, total, w.header.is_real ? 1 : 2},
             "1");
  file.commit();
}

}  // namespace quasi::gw
