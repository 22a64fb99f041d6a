#include "workers/gw/input/spinors/magnetisation.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

constexpr double kLargestShare = 1e-8;

double largest_of(const std::vector<Cplx>& values) {
  double largest = 0.0;
  for (const Cplx& value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

}  // namespace

std::size_t components_in(std::int64_t record_bytes, std::int64_t component_bytes,
                          const std::string& what) {
  for (const std::int64_t count : {1, 2, 4})
    if (record_bytes == count * component_bytes) return static_cast<std::size_t>(count);
  throw InvalidInput(what + " has a record of " + std::to_string(record_bytes) +
                     " bytes, which is not 1, 2 or 4 components of " +
                     std::to_string(component_bytes) + "; is the file damaged?");
}

std::vector<std::vector<Cplx>> without_magnetisation(std::vector<std::vector<Cplx>> components,
                                                     const std::string& file) {
  const double whole = largest_of(components.front());
  for (std::size_t i = 1; i < components.size(); ++i)
    if (const double part = largest_of(components[i]); part > kLargestShare * whole)
      throw InvalidInput("'" + file + "': component " + std::to_string(i + 1) + " reaches " +
                         shown(part) + ", more than 1e-8 of the largest value " + shown(whole) +
                         ": non-collinear magnetism is not supported; rerun the mean field "
                         "without magnetisation");
  components.resize(1);
  return components;
}

}  // namespace quasi::gw
