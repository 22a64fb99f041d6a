#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// Holds the text of a program's output. Every failure of its searches names the file.
class ForceDocument {
 public:
  /// @param program  named in messages
  /// @throws InvalidInput if the file cannot be read
  ForceDocument(const std::filesystem::path& file, std::string program);

  std::string_view text() const { return text_; }
  /// @throws InvalidInput naming the file
  [[noreturn]] void fail(const std::string& what) const;

  /// Returns the text between the first `open` and the next `close` in a part of the document.
  /// @throws InvalidInput if either is missing
  std::string_view between(std::string_view part, std::string_view open,
                           std::string_view close) const;

  /// Returns the next line of a part and removes it from there. Empty at the end.
  static std::string_view take_line(std::string_view& part);

  /// @throws InvalidInput unless the word is a finite number
  double real(std::string_view word) const;

  /// Returns the numbers of a part. Fortran may print a minus sign without a blank before it.
  std::vector<double> reals(std::string_view part) const;

  /// Returns the first three numbers of a part. @throws InvalidInput if there are fewer.
  Vec3 vector(std::string_view part, const std::string& name) const;

 private:
  std::string name_, program_, text_;
};

/// Returns the element of a label such as `Fe1`, `Si_a` or ` O `: its leading letters, two at most.
std::string element_of_label(std::string_view label);

}  // namespace quasi::thermal
