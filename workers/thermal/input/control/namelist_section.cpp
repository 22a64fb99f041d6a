#include "workers/thermal/input/control/namelist_section.hpp"

#include <sstream>

#include "workers/backend/error.hpp"

namespace quasi::thermal {

std::string number_text(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

void fail(const NamelistAssignment& a, const std::string& what) {
  throw InvalidInput(a.where + ": '" + a.key + "' " + what);
}

void assign_section(const NamelistAssignment& a, const std::vector<int>& extents,
                    const std::function<void(std::size_t, const NamelistValue&)>& set) {
  const std::size_t rank = extents.size();
  if (!a.subscripts.empty() && a.subscripts.size() != rank)
    fail(a, "has " + std::to_string(rank) + " dimension(s), " +
                std::to_string(a.subscripts.size()) + " subscript(s) given");
  std::vector<int> first(rank, 1);
  std::vector<int> last(extents);
  bool element = !a.subscripts.empty();
  for (std::size_t d = 0; d < a.subscripts.size(); ++d) {
    const NamelistSubscript& s = a.subscripts[d];
    element = element && s.single;
    if (s.first) first[d] = *s.first;
    if (s.last) last[d] = *s.last;
    if (first[d] < 1 || last[d] > extents[d] || first[d] > last[d])
      fail(a, "has extent " + std::to_string(extents[d]) + " in dimension " +
                  std::to_string(d + 1) + ", subscript " + std::to_string(first[d]) +
                  (s.single ? std::string() : std::string(":").append(std::to_string(last[d]))) +
                  " is outside");
  }
  std::size_t available = 1;
  for (std::size_t d = 0; d < rank; ++d)
    available *= static_cast<std::size_t>(last[d] - first[d] + 1);
  const auto offset_of = [&](const std::vector<int>& index) {
    std::size_t offset = 0;
    for (std::size_t d = rank; d-- > 0;)
      offset =
          offset * static_cast<std::size_t>(extents[d]) + static_cast<std::size_t>(index[d] - 1);
    return offset;
  };
  if (element) {  // from one element on, in storage order, as Fortran compilers accept
    std::size_t total = 1;
    for (const int e : extents) total *= static_cast<std::size_t>(e);
    available = total - offset_of(first);
  }
  if (a.values.empty()) fail(a, "has no value");
  if (a.values.size() > available)
    fail(a, "takes " + std::to_string(available) + " value(s) here, got " +
                std::to_string(a.values.size()));
  if (a.complete && a.subscripts.empty() && a.values.size() < available)
    fail(a, "takes " + std::to_string(available) + " values, got " +
                std::to_string(a.values.size()) + "; to set one alone name it, e.g. '" + a.key +
                (rank == 1   ? "(1)"
                 : rank == 2 ? "(1,1)"
                             : "(1,1,1)") +
                "'");
  std::vector<int> index = first;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    if (a.values[i].text) set(element ? offset_of(first) + i : offset_of(index), a.values[i]);
    for (std::size_t d = 0; !element && d < rank; ++d) {
      if (++index[d] <= last[d]) break;
      index[d] = first[d];
    }
  }
}

const NamelistValue& scalar(const NamelistAssignment& a) {
  if (!a.subscripts.empty()) fail(a, "is a scalar and takes no subscripts");
  if (a.values.size() != 1 || !a.values[0].text)
    fail(a, "takes one value, got " + std::to_string(a.values.size()));
  return a.values[0];
}

int scalar_int(const NamelistAssignment& a, long long low, long long high) {
  const long long value = namelist_integer(scalar(a), a);
  if (value < low || value > high)
    fail(a, "must lie between " + std::to_string(low) + " and " + std::to_string(high) + ", got " +
                std::to_string(value));
  return static_cast<int>(value);
}

double scalar_real(const NamelistAssignment& a, double low) {
  const double value = namelist_real(scalar(a), a);
  if (!(value >= low))
    fail(a, "must be at least " + number_text(low) + ", got " + number_text(value));
  return value;
}

double scalar_positive(const NamelistAssignment& a) {
  const double value = namelist_real(scalar(a), a);
  if (!(value > 0.0)) fail(a, "must be positive, got " + number_text(value));
  return value;
}

}  // namespace quasi::thermal
