#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "workers/thermal/input/control/namelist.hpp"

namespace quasi::thermal {

/// "WHERE: 'key' WHAT". @throws InvalidInput, always.
[[noreturn]] void fail(const NamelistAssignment& a, const std::string& what);

/// Calls set(flat element, value) for every element of the array section that the assignment names,
/// in column-major order; null values leave an element alone.
void assign_section(const NamelistAssignment& a, const std::vector<int>& extents,
                    const std::function<void(std::size_t, const NamelistValue&)>& set);

/// The one value of a scalar. @throws InvalidInput for subscripts, none or several values.
const NamelistValue& scalar(const NamelistAssignment& a);
int scalar_int(const NamelistAssignment& a, long long low, long long high);
double scalar_real(const NamelistAssignment& a, double low);
double scalar_positive(const NamelistAssignment& a);

/// Numbers in messages.
std::string number_text(double value);

}  // namespace quasi::thermal
