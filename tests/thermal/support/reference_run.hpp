#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "workers/thermal/input/control/control.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"

namespace quasi::thermal::test {

/// Rows of numbers of a text file, plain or gzipped. A row ends at its first word that is not a
/// number.
std::vector<std::vector<double>> numbers_of(const std::filesystem::path& file);

/// Outputs of the published 16³ example with its own CONTROL, whose second atom is at another
/// position than in the force constants.
inline constexpr const char* kPublished = "published_m16_sb1.0";

/// One run of FourPhonon: its CONTROL, the deck's force constants, and its BTE.* tables.
class ReferenceRun {
 public:
  /// Opens a run.
  /// @param name  a folder in runs/, or kPublished
  explicit ReferenceRun(const std::string& name);

  /// A new directory with CONTROL and force constants side by side, as a user would have them.
  const std::filesystem::path& deck() const { return deck_; }
  Control control(const std::vector<std::string>& settings = {
                      "compat=fourphonon"}) const;  ///< and the settings that the run needs

  /// Rows of numbers of a text file of the run, plain or gzipped, without comments after the
  /// numbers.
  std::vector<std::vector<double>> table(const std::string& file) const;
  /// Second column of a band-major mode file, as [irreducible point][branch].
  std::vector<double> mode_column(const std::string& file, int n_branches) const;
  std::vector<double> kappa(const std::string& file, double temperature_k) const;

  /// Replaces eigenvectors and velocities by the stored ones, so that no gauge freedom is left.
  void inject(const Crystal& crystal, const Symmetry& symmetry, const Control& control,
              Modes& modes) const;

 private:
  std::filesystem::path run_;
  std::vector<std::string> needs_;
  std::filesystem::path eigenvectors_;
  std::filesystem::path deck_;
};

}  // namespace quasi::thermal::test
