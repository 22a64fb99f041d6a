#include <algorithm>
#include <cmath>
#include <optional>

#include "workers/backend/error.hpp"
#include "workers/gw/input/espresso/espresso_save.hpp"
#include "workers/gw/input/fortran_file.hpp"
#include "workers/gw/input/header_checks.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/io/input_path.hpp"

// Reads the files of states and of the density in PREFIX.save. pw.x writes them as Fortran records
// (.dat) or as HDF5 (docs/theory/gw.md 1.5).
namespace quasi::gw {
namespace {

namespace fs = std::filesystem;

/// Returns the path FOLDER/NAME.dat, or FOLDER/NAME.hdf5 if the first one does not exist.
fs::path data_file(const fs::path& folder, const std::string& name) {
  for (const char* ending : {".dat", ".hdf5"})
    if (fs::exists(folder / (name + ending))) return folder / (name + ending);
  const std::string path = (folder / name).string();
  throw InvalidInput("'" + path + ".dat' and '" + path +
                     ".hdf5' do not exist. Rerun pw.x with disk_io = \"low\" and give its folder "
                     "PREFIX.save");
}

fs::path file_of_states(const EspressoSave& save, int ik, int spin) {
  const char* const of_spin =
      save.bands.header.n_spins == 1 ? "wfc" : (spin == 0 ? "wfcup" : "wfcdw");
  return data_file(save.folder, of_spin + std::to_string(ik + 1));
}

std::vector<IVec3> triples(const std::vector<std::int32_t>& flat) {
  std::vector<IVec3> list(flat.size() / 3);
  for (std::size_t i = 0; i < list.size(); ++i)
    list[i] = {flat[3 * i], flat[3 * i + 1], flat[3 * i + 2]};
  return list;
}

std::vector<IVec3> read_miller_indices(const H5Reader& file, std::int64_t expected,
                                       const std::string& name) {
  const auto flat = file.integers("/MillerIndices");
  if (static_cast<std::int64_t>(flat.size()) != 3 * expected)
    throw InvalidInput("'" + name + "': /MillerIndices holds " + std::to_string(flat.size()) +
                       " values, 3 × " + std::to_string(expected) + " are expected; rerun pw.x");
  std::vector<std::int32_t> narrow;
  for (const std::int64_t value : flat) {
    require_in_range(value, -100000, 100000, "a Miller index", name);
    narrow.push_back(static_cast<std::int32_t>(value));
  }
  return triples(narrow);
}

/// Reads the states of one k-point and spin from their file, band after band in ascending order.
class StatesOfPoint {
 public:
  StatesOfPoint(const EspressoSave& save, int ik, int spin)
      : path_(file_of_states(save, ik, spin)), n_pw_(save.n_pw[static_cast<std::size_t>(ik)]) {
    if (path_.extension() == ".hdf5")
      open_hdf5(save);
    else
      open_records(save, ik);
  }
  const std::vector<IVec3>& g() const { return g_; }
  void skip(int band) {
    if (records_) records_->skip(name_of(band));
  }
  std::vector<Cplx> read(int band) {
    std::vector<Cplx> state;
    if (records_) {
      state = records_->values<Cplx>(n_pw_, name_of(band));
    } else {
      const std::int64_t start[] = {band, 0}, count[] = {1, 2 * n_pw_};
      const auto flat = hdf5_->slab("/evc", start, count);
      for (std::size_t i = 0; i + 1 < flat.size(); i += 2) state.emplace_back(flat[i], flat[i + 1]);
    }
    require_finite(state, name_of(band) + ": coefficient", path_.string());
    return state;
  }
  std::string name() const { return path_.string(); }

 private:
  static std::string name_of(int band) { return "band " + std::to_string(band + 1); }

  void require(std::int64_t value, std::int64_t expected, const std::string& what) const {
    if (value != expected)
      throw InvalidInput("'" + name() + "': " + what + " is " + std::to_string(value) +
                         ", but data-file-schema.xml has " + std::to_string(expected) +
                         "; the files belong to different runs of pw.x; rerun it");
  }

  void open_hdf5(const EspressoSave& save) {
    hdf5_.emplace(input_file(path_));
    const auto shape = hdf5_->shape("/evc");
    if (shape.size() != 2) throw InvalidInput("'" + name() + "': /evc is no table; rerun pw.x");
    require(shape[0], save.bands.n_bands, "the number of bands");
    require(shape[1] / 2, n_pw_, "the number of plane waves");
    g_ = read_miller_indices(*hdf5_, n_pw_, name());
  }

  void open_records(const EspressoSave& save, int ik) {
    records_.emplace(input_file(path_));
    FortranRecord point = records_->record("k-point");
    require(point.take<std::int32_t>(), ik + 1, "the number of the k-point");
    Vec3 k{};
    for (double& x : k) x = point.take<double>();
    const Crystal& crystal = save.crystal();
    const Vec3 difference = multiply(crystal.avec, (1.0 / crystal.blat_per_bohr) * k) -
                            save.bands.k[static_cast<std::size_t>(ik)];
    if (dot(difference, difference) > 1e-10)
      throw InvalidInput(
          "'" + name() + "' holds another k-point than number " + std::to_string(ik + 1) +
          " of data-file-schema.xml; the files belong to different runs of pw.x; rerun it");
    FortranRecord sizes = records_->record("sizes");
    sizes.take<std::int32_t>();  // number of plane waves of one process of pw.x, not used
    require(sizes.take<std::int32_t>(), n_pw_, "the number of plane waves");
    require(sizes.take<std::int32_t>(), 1, "the number of components");
    require(sizes.take<std::int32_t>(), save.bands.n_bands, "the number of bands");
    records_->skip("reciprocal vectors");
    g_ = triples(records_->values<std::int32_t>(3 * n_pw_, "Miller indices"));
  }

  fs::path path_;
  std::int64_t n_pw_;
  std::vector<IVec3> g_;
  std::optional<FortranReader> records_;
  std::optional<H5Reader> hdf5_;
};

/// Reads the coefficients of all bands of one k-point and spin.
/// @param known  bands that an interrupted job has already written to `states`; they are skipped
/// @param states  file on disk that takes the coefficients; null: they stay in memory
/// @return [band][plane wave]; empty if `states` takes them
std::vector<Cplx> read_spin(StatesOfPoint& file, int ik, int spin, std::int64_t known,
                            const EspressoSave& save, StateFile* states) {
  std::vector<Cplx> all;
  for (int band = 0; band < save.bands.n_bands; ++band) {
    if (band < known) {
      file.skip(band);
      continue;
    }
    const std::vector<Cplx> state = file.read(band);
    check_norm(state, band, ik, file.name());
    if (states != nullptr)
      states->write(ik, spin, band, state);
    else
      all.insert(all.end(), state.begin(), state.end());
  }
  return all;
}

/// Holds the density as its file does, in electrons/Bohr³.
struct DensityFile {
  std::vector<IVec3> g;
  /// ρ↑ + ρ↓ and, with two spins, ρ↑ − ρ↓; [part][G].
  std::vector<std::vector<Cplx>> parts;
};

DensityFile read_density_records(const fs::path& path) {
  FortranReader file(input_file(path));
  FortranRecord sizes = file.record("sizes");
  const auto v = sizes.take<std::int32_t>(3);
  require_in_range(v[1], 1, kMaxPlaneWaves, "number of plane waves", path.string());
  require_in_range(v[2], 1, 4, "number of spins", path.string());
  file.skip("reciprocal vectors");
  DensityFile density{triples(file.values<std::int32_t>(3 * std::int64_t{v[1]}, "Miller indices")),
                      {}};
  for (int part = 0; part < v[2]; ++part)
    density.parts.push_back(file.values<Cplx>(v[1], "density"));
  return density;
}

DensityFile read_density_hdf5(const fs::path& path) {
  const H5Reader file(input_file(path));
  DensityFile density;
  for (const char* name : {"/rhotot_g", "/rhodiff_g"}) {
    if (!file.has(name)) continue;
    const auto flat = file.doubles(name);
    std::vector<Cplx>& part = density.parts.emplace_back();
    for (std::size_t i = 0; i + 1 < flat.size(); i += 2) part.emplace_back(flat[i], flat[i + 1]);
  }
  if (density.parts.empty())
    throw InvalidInput("'" + path.string() + "' has no dataset /rhotot_g; rerun pw.x");
  density.g =
      read_miller_indices(file, static_cast<std::int64_t>(density.parts[0].size()), path.string());
  return density;
}

}  // namespace

bool is_espresso_save(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::vector<IVec3> read_espresso_plane_waves(const EspressoSave& save, int ik) {
  return StatesOfPoint(save, ik, 0).g();
}

Wavefunctions read_espresso_states(const EspressoSave& save, const StateStorage& storage) {
  Wavefunctions w = save.bands;
  const auto states = state_file_for(storage, save.folder / "data-file-schema.xml", w, save.n_pw);
  for (int ik = 0; ik < save.n_k(); ++ik) {
    KPointWaves at;
    const std::int64_t known = states != nullptr ? states->bands_written(ik) : 0;
    for (int spin = 0; spin < w.header.n_spins; ++spin) {
      StatesOfPoint file(save, ik, spin);
      if (spin > 0 && file.g() != at.g)
        throw InvalidInput("'" + file.name() +
                           "' lists other plane waves than the file of spin up; rerun pw.x");
      at.g = file.g();
      auto values =
          read_spin(file, ik, spin, known - std::int64_t{spin} * w.n_bands, save, states.get());
      if (states == nullptr) at.coefficients.emplace_back(std::move(values));
    }
    if (states != nullptr && known < states->bands_of_point()) states->finish_point(ik);
    w.waves.push_back(std::move(at));
  }
  if (states != nullptr) take_mapped(*states, w);
  check_wavefunctions(w, save.folder.string());
  return w;
}

PlaneWaveField read_espresso_density(const EspressoSave& save) {
  const fs::path path = data_file(save.folder, "charge-density");
  DensityFile density =
      path.extension() == ".hdf5" ? read_density_hdf5(path) : read_density_records(path);
  const auto n_spins = static_cast<std::size_t>(save.bands.header.n_spins);
  if (density.parts.size() != n_spins)
    throw InvalidInput("'" + path.string() + "' holds " + std::to_string(density.parts.size()) +
                       " parts, " + std::to_string(n_spins) +
                       " are expected; the files belong to different runs of pw.x; rerun it");
  PlaneWaveField field{.header = save.bands.header, .values = {}};
  field.header.title = "RHO-Complex";
  check_g_list(density.g, save.bands.header.fft_grid, "", path.string());
  const GIndex index(density.g);
  field.values.assign(n_spins, std::vector<Cplx>(field.header.g.size()));
  for (std::size_t i = 0; i < field.header.g.size(); ++i) {
    const std::int32_t at = index.find(field.header.g[i]);
    if (at < 0)
      throw InvalidInput("'" + path.string() + "' lacks plane waves of the density below " +
                         "ecutrho; the files belong to different runs of pw.x; rerun it");
    const double volume = save.crystal().volume_bohr3;
    const Cplx sum = volume * density.parts[0][static_cast<std::size_t>(at)];
    field.values[0][i] = sum;
    if (n_spins == 1) continue;
    const Cplx difference = volume * density.parts[1][static_cast<std::size_t>(at)];
    field.values[0][i] = 0.5 * (sum + difference);
    field.values[1][i] = 0.5 * (sum - difference);
  }
  for (const auto& spin : field.values) require_finite(spin, "density", path.string());
  return field;
}

}  // namespace quasi::gw
