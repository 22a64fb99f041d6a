#include "workers/thermal/input/control.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "workers/backend/error.hpp"
#include "workers/io/input_path.hpp"
#include "workers/thermal/input/namelist.hpp"
#include "workers/thermal/input/namelist_section.hpp"

namespace quasi::thermal {
namespace {

constexpr int kMaxAtoms = 1000;  // a primitive cell; the work grows with the cube of it
constexpr int kMaxElements = 118;
constexpr int kMaxMeshAxis = 1024;
constexpr int kMaxSupercellAxis = 256;
constexpr std::size_t kMaxTemperatures = 10000;
constexpr double kMaxTemperature_k =
    1e5;  // k_B T = 8.6 eV; tungsten is bound by 8.9 eV an atom, nothing by much more
constexpr std::size_t kMaxSweep = 1000;
constexpr double kMaxModes = 2e7;  // their eigenvectors alone are 2 GB for six branches
constexpr double kMaxPosition =
    100;  // fractional coordinates; images matter, but not that far away
constexpr double kMaxSymmetryTolerance_nm = 0.1;

using Value = NamelistValue;
using Assignment = NamelistAssignment;

/// Collects a deck's assignments into a Control. Array extents depend on nelements, natoms and
/// norientations, so those three are read first, wherever they stand.
class Builder {
 public:
  explicit Builder(std::string where) {
    control_.deck_name = std::move(where);
    describe();
  }

  void apply(const std::vector<Assignment>& assignments) {
    for (const auto pass : {true, false})
      for (const Assignment& a : assignments) {
        const auto found = keys_.find(a.key);
        if (found == keys_.end()) throw InvalidInput(unknown_key_message(a.key, a.where, names()));
        const Key& key = found->second;
        if (!key.group.empty() && !a.group.empty() && key.group != a.group)
          fail(a, "belongs in group '&" + key.group + "', not in '&" + a.group + "'");
        if (key.sizes == pass) key.set(a);
        if (!pass) control_.given_at[a.key] = a.where;
      }
  }

  /// Sizes are known: make room for what depends on them.
  void allocate() {
    Control& c = control_;
    if (c.n_elements < 1) missing("nelements");
    if (c.n_atoms < 1) missing("natoms");
    c.elements.assign(static_cast<std::size_t>(c.n_elements), "");
    c.masses_amu.assign(static_cast<std::size_t>(c.n_elements), kUnset);
    c.g_factors.assign(static_cast<std::size_t>(c.n_elements), kUnset);
    c.types.assign(static_cast<std::size_t>(c.n_atoms), 0);
    c.positions.assign(static_cast<std::size_t>(c.n_atoms), {kUnset, kUnset, kUnset});
    c.born.assign(static_cast<std::size_t>(c.n_atoms), Mat3{});
    c.orientations.assign(static_cast<std::size_t>(c.n_orientations), {0, 0, 0});
  }

  void sizes_only(const std::vector<Assignment>& assignments) {
    for (const Assignment& a : assignments) {
      const auto found = keys_.find(a.key);
      if (found != keys_.end() && found->second.sizes) found->second.set(a);
    }
  }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, key] : keys_) result.push_back(name);
    return result;
  }

  Control finish() {
    temperatures();
    required();
    choices();
    combinations();
    return std::move(control_);
  }

 private:
  static constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();

  struct Key {
    std::string group;  ///< "" for extensions, which may stand anywhere
    std::function<void(const Assignment&)> set;
    bool sizes = false;
  };

  bool given(const std::string& key) const { return control_.given_at.count(key) > 0; }
  std::string where(const std::vector<std::string>& keys) const { return control_.where(keys); }
  [[noreturn]] void missing(const std::string& key) const {
    throw InvalidInput(control_.deck_name + ": '" + key + "' is required and not set");
  }

  void flag(const std::string& group, const std::string& name, bool& target) {
    keys_[name] = {group,
                   [&target](const Assignment& a) { target = namelist_logical(scalar(a), a); }};
  }
  void integer(const std::string& group, const std::string& name, int& target, long long low,
               long long high) {
    keys_[name] = {
        group, [&target, low, high](const Assignment& a) { target = scalar_int(a, low, high); }};
  }
  void at_least(const std::string& group, const std::string& name, double& target, double low) {
    keys_[name] = {group, [&target, low](const Assignment& a) { target = scalar_real(a, low); }};
  }
  void positive(const std::string& group, const std::string& name, double& target) {
    keys_[name] = {group, [&target](const Assignment& a) { target = scalar_positive(a); }};
  }
  /// A list of numbers above (or, `inclusive`, from) a limit.
  void reals(const std::string& name, std::vector<double>& target, double low, bool inclusive) {
    keys_[name] = {"", [&target, low, inclusive](const Assignment& a) {
                     if (!a.subscripts.empty()) fail(a, "takes no subscripts");
                     target.clear();
                     for (const Value& v : a.values) {
                       if (!v.text) fail(a, "has an empty value in its list");
                       target.push_back(namelist_real(v, a));
                       if (target.back() < low || (!inclusive && target.back() == low))
                         fail(a, (inclusive ? "must be at least " : "must be above ") +
                                     number_text(low) + ", got " + number_text(target.back()));
                     }
                     if (target.size() > kMaxSweep)
                       fail(a, "lists more than " + std::to_string(kMaxSweep) + " values");
                   }};
  }
  void samples(const std::string& name, std::int64_t& target) {
    keys_[name] = {"parameters", [&target](const Assignment& a) {
                     target = namelist_integer(scalar(a), a);
                     if (target != -1 && target < 1)
                       fail(a, "must be -1 (exact) or at least 1, got " + std::to_string(target));
                   }};
  }
  void index3(const std::string& group, const std::string& name, Index3& target, int high) {
    keys_[name] = {group, [&target, high](const Assignment& a) {
                     assign_section(a, {3}, [&](std::size_t i, const Value& v) {
                       const long long value = namelist_integer(v, a);
                       if (value < 1 || value > high)
                         fail(a, "must lie between 1 and " + std::to_string(high) + ", got " +
                                     std::to_string(value));
                       target[i] = static_cast<int>(value);
                     });
                   }};
  }
  void word(const std::string& name, std::string& target, std::vector<std::string> choices_of) {
    keys_[name] = {"", [&target, allowed = std::move(choices_of)](const Assignment& a) {
                     std::string text = *scalar(a).text;
                     std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
                       return static_cast<char>(std::tolower(c));
                     });
                     if (std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
                       std::string list;
                       for (const auto& choice : allowed)
                         list += (list.empty() ? "" : ", ") + choice;
                       fail(a, "must be one of " + list + ", got '" + text + "'");
                     }
                     target = text;
                   }};
  }

  void describe() {
    Control& c = control_;
    c.lattvec = {Vec3{kUnset, kUnset, kUnset}, Vec3{kUnset, kUnset, kUnset},
                 Vec3{kUnset, kUnset, kUnset}};
    const auto size = [this](const std::string& name, int& target, int low, int high) {
      keys_[name] = {
          "allocations",
          [&target, low, high](const Assignment& a) { target = scalar_int(a, low, high); }, true};
    };
    size("nelements", c.n_elements, 1, kMaxElements);
    size("natoms", c.n_atoms, 1, kMaxAtoms);
    size("norientations", c.n_orientations, 0, 1000);
    index3("allocations", "ngrid", c.mesh, kMaxMeshAxis);

    positive("crystal", "lfactor", c.lfactor_nm);
    index3("crystal", "scell", c.supercell, kMaxSupercellAxis);
    keys_["lattvec"] = {"crystal", [&c](const Assignment& a) {
                          assign_section(a, {3, 3}, [&](std::size_t i, const Value& v) {
                            c.lattvec[i / 3][i % 3] = namelist_real(v, a);
                          });
                        }};
    keys_["elements"] = {"crystal", [&c](const Assignment& a) {
                           assign_section(a, {c.n_elements}, [&](std::size_t i, const Value& v) {
                             std::string text = *v.text;
                             text.erase(0, text.find_first_not_of(" \t"));
                             text.erase(text.find_last_not_of(" \t") + 1);
                             if (text.empty() || text.size() > 8)
                               fail(a, "holds an empty or overlong symbol");
                             c.elements[i] = text;
                           });
                         }};
    keys_["types"] = {
        "crystal", [&c](const Assignment& a) {
          assign_section(a, {c.n_atoms}, [&](std::size_t i, const Value& v) {
            const long long type = namelist_integer(v, a);
            if (type < 1 || type > c.n_elements)
              fail(a, "of atom " + std::to_string(i + 1) + " must lie between 1 and nelements = " +
                          std::to_string(c.n_elements) + ", got " + std::to_string(type));
            c.types[i] = static_cast<int>(type);
          });
        }};
    keys_["positions"] = {"crystal", [&c](const Assignment& a) {
                            assign_section(a, {3, c.n_atoms}, [&](std::size_t i, const Value& v) {
                              c.positions[i / 3][i % 3] = namelist_real(v, a);
                            });
                          }};
    keys_["masses"] = {"crystal", [&c](const Assignment& a) {
                         assign_section(a, {c.n_elements}, [&](std::size_t i, const Value& v) {
                           c.masses_amu[i] = namelist_real(v, a);
                           if (!(c.masses_amu[i] > 0.0))
                             fail(a, "must be positive (amu), got " + number_text(c.masses_amu[i]));
                         });
                       }};
    keys_["gfactors"] = {"crystal", [&c](const Assignment& a) {
                           assign_section(a, {c.n_elements}, [&](std::size_t i, const Value& v) {
                             c.g_factors[i] = namelist_real(v, a);
                             if (!(c.g_factors[i] >= 0.0))
                               fail(a, "must not be negative, got " + number_text(c.g_factors[i]));
                           });
                         }};
    keys_["epsilon"] = {"crystal", [&c](const Assignment& a) {
                          assign_section(a, {3, 3}, [&](std::size_t i, const Value& v) {
                            c.epsilon[i % 3][i / 3] = namelist_real(v, a);
                          });
                        }};
    keys_["born"] = {"crystal", [&c](const Assignment& a) {
                       assign_section(a, {3, 3, c.n_atoms}, [&](std::size_t i, const Value& v) {
                         c.born[i / 9][i % 3][i / 3 % 3] = namelist_real(v, a);
                         c.born_given = true;
                       });
                     }};
    keys_["orientations"] = {"crystal", [&c](const Assignment& a) {
                               assign_section(
                                   a, {3, c.n_orientations}, [&](std::size_t i, const Value& v) {
                                     const long long value = namelist_integer(v, a);
                                     if (value < -1000 || value > 1000)
                                       fail(a, "must lie between -1000 and 1000");
                                     c.orientations[i / 3][i % 3] = static_cast<int>(value);
                                   });
                             }};

    keys_["t"] = {"parameters", [this](const Assignment& a) {
                    if (!a.subscripts.empty()) fail(a, "takes no subscripts");
                    range_.clear();
                    list_k_.clear();
                    for (const Value& v : a.values) {
                      if (!v.text) fail(a, "has an empty value in its list");
                      list_k_.push_back(namelist_real(v, a));
                    }
                    if (list_k_.empty()) fail(a, "has no value");
                  }};
    for (const char* name : {"t_min", "t_max", "t_step"})
      keys_[name] = {"parameters", [this, name](const Assignment& a) {
                       list_k_.clear();
                       range_[name] = namelist_real(scalar(a), a);
                     }};
    positive("parameters", "scalebroad", c.scale_broad);
    positive("parameters", "rmin", c.radius_min_nm);
    positive("parameters", "rmax", c.radius_max_nm);
    positive("parameters", "dr", c.radius_step_nm);
    integer("parameters", "maxiter", c.max_iterations, 1, 1000000);
    positive("parameters", "eps", c.convergence_tolerance);
    integer("parameters", "nticks", c.n_ticks, 2, 1000000);
    positive("parameters", "omega_max", c.omega_max_rad_ps);
    samples("num_sample_process_3ph", c.samples_3ph);
    samples("num_sample_process_3ph_phase_space", c.samples_3ph_phase_space);
    samples("num_sample_process_4ph", c.samples_4ph);
    samples("num_sample_process_4ph_phase_space", c.samples_4ph_phase_space);
    keys_["ewald"] = {"parameters", [](const Assignment& a) {
                        if (namelist_real(scalar(a), a) > 0.0)
                          fail(
                              a,
                              "belongs to TDEP second-order constants, which this program does not "
                              "read; convert them to FORCE_CONSTANTS_2ND or espresso.ifc2");
                      }};

    flag("flags", "nonanalytic", c.nonanalytic);
    flag("flags", "convergence", c.converge);
    flag("flags", "isotopes", c.isotopes);
    flag("flags", "autoisotopes", c.auto_isotopes);
    flag("flags", "nanowires", c.nanowires);
    flag("flags", "onlyharmonic", c.only_harmonic);
    flag("flags", "espresso", c.espresso);
    flag("flags", "four_phonon", c.four_phonon);
    flag("flags", "four_phonon_iteration", c.four_phonon_iteration);
    keys_["tdep"] = {"flags", [](const Assignment& a) {
                       if (namelist_logical(scalar(a), a))
                         fail(a,
                              "= .true.: TDEP second-order constants are not read; convert them to "
                              "FORCE_CONSTANTS_2ND or espresso.ifc2");
                     }};

    word("compat", compat_, {"none", "fourphonon"});
    word("broadening", broadening_, {"symmetric", "adaptive-max", "adaptive-rms"});
    word("solver", solver_, {"auto", "cg", "gmres", "fixed-point"});
    word("sampling", sampling_, {"auto", "uniform", "by-weight"});
    word("strategy", strategy_,
         {"factorised", "list-host", "list-device", "mode-by-mode", "test-and-sum"});
    word("precision", precision_, {"double", "mixed"});
    positive("", "cut3", c.cut_3ph);
    positive("", "cut4", c.cut_4ph);
    flag("", "window_norm", c.window_norm);
    at_least("", "sigma_least_4ph", c.sigma_least_4ph_rad_ps, 0.0);
    at_least("", "sigma_floor_4ph", c.sigma_floor_4ph_rad_ps, 0.0);
    at_least("", "omega_floor_4ph", c.omega_floor_4ph_rad_ps, 0.0);
    at_least("", "tie_tolerance", c.tie_tolerance_rad_ps, 0.0);
    flag("", "exact_weights", c.exact_weights);
    flag("", "symmetry", c.use_symmetry);
    positive("", "symprec", c.symmetry_tolerance);
    positive("", "degeneracy", c.degeneracy_rad_ps);
    flag("", "average_degenerate", c.average_degenerate);
    flag("", "allow_imaginary", c.allow_imaginary);
    flag("", "allow_inconsistent_position", c.allow_inconsistent_position);
    flag("", "allow_broken_sum_rule", c.allow_broken_sum_rule);
    flag("", "acoustic_sum_rule", c.acoustic_sum_rule);
    at_least("", "boundary_length_nm", c.boundary_length_nm, 0.0);
    flag("", "coherence", c.coherence);
    reals("isotope_factors", c.isotope_factors, 0.0, true);
    reals("grain_sizes_nm", c.grain_sizes_nm, 0.0, false);
    flag("", "convergence_study", c.convergence_study);
    reals("study_scalebroads", c.study_scale_broads, 0.0, false);
    keys_["study_meshes"] = {"", [&c](const Assignment& a) {
                               c.study_meshes.clear();
                               for (const Value& v : a.values) {
                                 const long long n = namelist_integer(v, a);
                                 if (n < 2 || n > kMaxMeshAxis)
                                   fail(a,
                                        "must lie between 2 and " + std::to_string(kMaxMeshAxis));
                                 c.study_meshes.push_back(static_cast<int>(n));
                               }
                             }};
    at_least("", "sheet_thickness_nm", c.sheet_thickness_nm, 0.0);
    integer("", "sheet_axis", c.sheet_axis, 1, 3);
    keys_["seed"] = {"", [&c](const Assignment& a) {
                       c.seed = namelist_integer(scalar(a), a);
                       if (c.seed < 0) fail(a, "must not be negative");
                     }};
    at_least("", "checkpoint_interval_s", c.checkpoint_interval_s, 0.0);
    at_least("", "checkpoint_limit_mib", c.checkpoint_limit_mib, 0.0);
    at_least("", "memory_budget_mib", c.memory_budget_mib, 0.0);
    at_least("", "target_kappa_error", c.target_kappa_error, 0.0);
  }

  /// thermal.md 1.1: T_min, T_min + T_step, … ≤ T_max; T_max itself is the last point when the last
  /// step overshoots it by more than 1 K.
  void temperatures() {
    auto& t = control_.temperatures_k;
    if (!list_k_.empty()) {
      t = list_k_;
    } else if (!range_.empty()) {
      for (const char* name : {"t_min", "t_max", "t_step"})
        if (range_.count(name) == 0) missing(name);
      const double low = range_.at("t_min");
      const double high = range_.at("t_max");
      const double step = range_.at("t_step");
      if (!(step > 0.0))
        throw InvalidInput(where({"t_step"}) + ": 't_step' must be positive, got " +
                           number_text(step));
      if (high < low)
        throw InvalidInput(where({"t_max", "t_min"}) + ": 't_max' = " + number_text(high) +
                           " is below 't_min' = " + number_text(low));
      if ((high - low) / step > static_cast<double>(kMaxTemperatures))
        throw InvalidInput(where({"t_step"}) + ": 't_step' = " + number_text(step) +
                           " gives more than " + std::to_string(kMaxTemperatures) +
                           " temperatures");
      const auto n = static_cast<int>(std::floor((high - low) / step + 1e-9));
      for (int i = 0; i <= n; ++i) t.push_back(low + i * step);
      if (t.back() + step - high > 1.0 && high - t.back() > 1e-9) t.push_back(high);
    } else {
      missing("T");
    }
    if (t.size() > kMaxTemperatures)
      throw InvalidInput(where({"t"}) + ": 'T' lists more than " +
                         std::to_string(kMaxTemperatures) + " temperatures");
    const std::string place = list_k_.empty() ? where({"t_min", "t_max", "t_step"}) : where({"t"});
    for (const double value : t)
      if (!(value > 0.0 && value <= kMaxTemperature_k))
        throw InvalidInput(place + ": temperatures ('T') must lie above 0 and at most at " +
                           number_text(kMaxTemperature_k) +
                           " K, where k_B T is the energy that binds the strongest crystals, got " +
                           number_text(value) +
                           " K; give kelvin below the crystal's melting point");
  }

  void required() {
    const Control& c = control_;
    if (c.mesh[0] < 1 || c.mesh[1] < 1 || c.mesh[2] < 1) missing("ngrid");
    if (c.supercell[0] < 1 || c.supercell[1] < 1 || c.supercell[2] < 1) missing("scell");
    const double points = 1.0 * c.mesh[0] * c.mesh[1] * c.mesh[2];
    if (points * c.n_branches() > kMaxModes)
      throw InvalidInput(where({"ngrid"}) + ": 'ngrid' gives " +
                         number_text(points * c.n_branches()) + " modes, more than the limit of " +
                         number_text(kMaxModes) + "; use a coarser mesh");
    for (int i = 0; i < 3; ++i)
      for (int d = 0; d < 3; ++d)
        if (std::isnan(c.lattvec[i][d]))
          missing("lattvec(" + std::to_string(d + 1) + "," + std::to_string(i + 1) + ")");
    if (c.symmetry_tolerance > kMaxSymmetryTolerance_nm)
      throw InvalidInput(where({"symprec"}) + ": 'symprec' = " + number_text(c.symmetry_tolerance) +
                         " nm is above the limit of " + number_text(kMaxSymmetryTolerance_nm));
    for (int atom = 0; atom < c.n_atoms; ++atom) {
      if (c.types[atom] == 0) missing("types(" + std::to_string(atom + 1) + ")");
      for (int d = 0; d < 3; ++d)
        if (std::isnan(c.positions[atom][d]))
          missing("positions(" + std::to_string(d + 1) + "," + std::to_string(atom + 1) + ")");
      for (const double x : c.positions[atom])
        if (std::fabs(x) > kMaxPosition)
          throw InvalidInput(where({"positions"}) + ": 'positions' of atom " +
                             std::to_string(atom + 1) + " holds " + number_text(x) +
                             ", beyond the limit of " + number_text(kMaxPosition) + " cells");
    }
    for (int e = 0; e < c.n_elements; ++e) {
      if (c.elements[e].empty()) missing("elements(" + std::to_string(e + 1) + ")");
      if (!c.auto_isotopes) {
        if (std::isnan(c.masses_amu[e])) missing("masses(" + std::to_string(e + 1) + ")");
        if (std::isnan(c.g_factors[e])) {
          if (c.isotopes) missing("gfactors(" + std::to_string(e + 1) + ")");
          control_.g_factors[e] = 0.0;
        }
      }
    }
  }

  /// Turns words into enumerations; what the reference program has fixed is the default of
  /// compat = "fourphonon", and every single choice can still be set by its own key.
  void choices() {
    Control& c = control_;
    c.compat = compat_ == "fourphonon";
    if (c.compat) {
      if (!given("broadening")) broadening_ = "adaptive-max";
      if (!given("window_norm")) c.window_norm = false;
      if (!given("sigma_floor_4ph")) c.sigma_floor_4ph_rad_ps = 1e-3;
      if (!given("omega_floor_4ph")) c.omega_floor_4ph_rad_ps = 1.25;
      if (!given("tie_tolerance")) c.tie_tolerance_rad_ps = 0.0;
      if (!given("exact_weights")) c.exact_weights = false;
      if (!given("average_degenerate")) c.average_degenerate = false;
      if (!given("coherence")) c.coherence = false;
    }
    c.broadening = broadening_ == "symmetric"      ? Broadening::kSymmetric
                   : broadening_ == "adaptive-max" ? Broadening::kAdaptiveMax
                                                   : Broadening::kAdaptiveRms;
    const bool symmetric = c.broadening == Broadening::kSymmetric;
    if (solver_ == "auto") solver_ = symmetric ? "cg" : "gmres";
    c.solver = solver_ == "cg"      ? Solver::kConjugateGradients
               : solver_ == "gmres" ? Solver::kGmres
                                    : Solver::kFixedPoint;
    if (c.solver == Solver::kConjugateGradients && !symmetric)
      throw InvalidInput(
          where({"solver", "broadening", "compat"}) +
          ": solver = cg needs the symmetric collision operator, and broadening = " + broadening_ +
          " does not give one; use broadening = symmetric, or solver = gmres "
          "or fixed-point");
    c.sampling = sampling_ == "uniform" || (sampling_ == "auto" && c.compat) ? Sampling::kUniform
                                                                             : Sampling::kByWeight;
    const std::map<std::string, Strategy> strategies{{"factorised", Strategy::kFactorised},
                                                     {"list-host", Strategy::kListHost},
                                                     {"list-device", Strategy::kListDevice},
                                                     {"mode-by-mode", Strategy::kModeByMode},
                                                     {"test-and-sum", Strategy::kTestAndSum}};
    c.strategy = strategies.at(strategy_);
    c.precision = precision_ == "mixed" ? Precision::kMixed : Precision::kDouble;
    if (c.precision == Precision::kMixed && c.strategy != Strategy::kFactorised)
      throw InvalidInput(where({"precision", "strategy"}) +
                         ": 'precision' = mixed is an option of 'strategy' = factorised");
  }

  void combinations() const {
    const Control& c = control_;
    const auto impossible = [this](const std::vector<std::string>& keys, const std::string& what) {
      throw InvalidInput(where(keys) + ": " + what);
    };
    if (c.samples_rates_3ph() && c.converge)
      impossible({"num_sample_process_3ph", "target_kappa_error", "convergence"},
                 "'num_sample_process_3ph' (or 'target_kappa_error' without 'four_phonon') samples "
                 "the relaxation-time "
                 "rates, which cannot be iterated; with it set 'convergence' = .false.");
    if (c.samples_rates_3ph() &&
        (c.strategy != Strategy::kFactorised || c.precision == Precision::kMixed))
      impossible(
          {"strategy", "precision", "num_sample_process_3ph", "target_kappa_error"},
          "'strategy' and 'precision' are those of exact sums; leave them at their defaults where "
          "three-phonon rates are sampled");
    if (c.four_phonon_iteration && !(c.four_phonon && c.converge))
      impossible({"four_phonon_iteration", "four_phonon", "convergence"},
                 "'four_phonon_iteration' needs 'four_phonon' = .true. and 'convergence' = .true.");
    if (c.samples_rates_4ph() && c.four_phonon_iteration)
      impossible({"num_sample_process_4ph", "target_kappa_error", "four_phonon_iteration"},
                 "'num_sample_process_4ph' (or 'target_kappa_error') and 'four_phonon_iteration' "
                 "exclude each other: "
                 "sampled rates cannot be iterated");
    if (!c.four_phonon && (c.samples_4ph > 0 || c.samples_4ph_phase_space > 0))
      impossible({"num_sample_process_4ph", "num_sample_process_4ph_phase_space", "four_phonon"},
                 "'num_sample_process_4ph' and 'num_sample_process_4ph_phase_space' need "
                 "'four_phonon' = .true.");
    if (c.nanowires && c.n_orientations < 1)
      impossible({"nanowires", "norientations"},
                 "'nanowires' needs 'norientations' of at least 1 and 'orientations'");
    if (c.nanowires)
      for (const Index3& axis : c.orientations)
        if (axis == Index3{0, 0, 0})
          impossible({"orientations"}, "'orientations' has an axis that is not set or zero");
    if (c.convergence_study && c.only_harmonic)
      impossible({"convergence_study", "onlyharmonic"},
                 "'convergence_study' studies κ, which 'onlyharmonic' = .true. leaves out");
    if (c.nanowires && c.boundary_length_nm > 0.0)
      impossible({"nanowires", "boundary_length_nm"},
                 "'nanowires' and 'boundary_length_nm' both describe the walls; set one of them");
    if (!c.isotope_factors.empty() && !c.isotopes)
      impossible({"isotope_factors", "isotopes"},
                 "'isotope_factors' scales isotope scattering and needs 'isotopes' = .true.");
    if (!c.grain_sizes_nm.empty() && c.boundary_length_nm > 0.0)
      impossible(
          {"grain_sizes_nm", "boundary_length_nm"},
          "'grain_sizes_nm' and 'boundary_length_nm' both describe the boundary; set one of them");
    if (c.radius_max_nm < c.radius_min_nm) impossible({"rmax", "rmin"}, "'rmax' is below 'rmin'");
  }

  Control control_;
  std::map<std::string, Key> keys_;
  std::map<std::string, double> range_;
  std::vector<double> list_k_;
  std::string compat_ = "none";
  std::string broadening_ = "symmetric";
  std::string solver_ = "auto";
  std::string sampling_ = "auto";
  std::string strategy_ = "factorised";
  std::string precision_ = "double";
};

}  // namespace

std::string Control::where(const std::vector<std::string>& keys) const {
  std::vector<std::string> places;
  for (const std::string& key : keys)
    if (const auto at = given_at.find(key);
        at != given_at.end() && std::find(places.begin(), places.end(), at->second) == places.end())
      places.push_back(at->second);
  std::string text;
  for (const std::string& place : places) text += (text.empty() ? "" : ", ") + place;
  return places.empty() ? deck_name : text;
}

Control parse_control(const std::string& text, const std::string& where,
                      const std::vector<NamelistAssignment>& overrides) {
  const std::vector<Assignment> deck = parse_namelists(text, where);
  std::set<std::string> groups;
  for (const Assignment& a : deck) {
    groups.insert(a.group);
    if (a.group != "allocations" && a.group != "crystal" && a.group != "parameters" &&
        a.group != "flags")
      throw InvalidInput(
          unknown_key_message(std::string("&").append(a.group), a.where,
                              {"&allocations", "&crystal", "&parameters", "&flags"}));
  }

  Builder builder(where);
  builder.sizes_only(deck);
  builder.sizes_only(overrides);
  builder.allocate();
  builder.apply(deck);
  builder.apply(overrides);
  return builder.finish();
}

std::vector<NamelistAssignment> assignments_of(const std::vector<Setting>& settings) {
  std::vector<Assignment> assignments;
  for (const Setting& setting : settings) {
    std::string value = setting.value;
    if (value.starts_with('[')) std::erase_if(value, [](char c) { return c == '[' || c == ']'; });
    assignments.push_back(parse_namelist_setting(setting.key, value));
  }
  return assignments;
}

const std::vector<std::string>& control_keys() {
  static const std::vector<std::string> keys = Builder("").names();
  return keys;
}

Control read_control(const std::filesystem::path& directory, const std::vector<Setting>& settings) {
  return read_control(directory, assignments_of(settings));
}

Control read_control(const std::filesystem::path& directory,
                     const std::vector<NamelistAssignment>& overrides) {
  const std::filesystem::path file = directory / "CONTROL";
  std::error_code failure;
  if (!std::filesystem::is_directory(directory, failure))
    throw InvalidInput("deck '" + directory.string() + "' is not a directory");
  std::ifstream in(input_file(file), std::ios::binary);
  if (!in)
    throw InvalidInput("'" + file.string() +
                       "' cannot be read; a thermal deck needs a CONTROL file");
  constexpr std::size_t kMaxBytes = 16 << 20;
  std::string text;
  char buffer[1 << 16];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxBytes)
      throw InvalidInput("'" + file.string() + "' is larger than 16 MiB; is it a CONTROL file?");
  }
  return parse_control(text, "CONTROL", overrides);
}

}  // namespace quasi::thermal
