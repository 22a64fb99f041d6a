#pragma once

#include <cstdio>
#include <string>

#include "workers/io/table_reader.hpp"
#include "workers/mosfet/model/bias.hpp"

namespace quasi::mosfet {

/// Returns "V_GS = 0.6 V, V_DS = 0.4 V", for messages.
inline std::string name_of(const BiasPoint& bias) {
  return "V_GS = " + shown(bias.vgs_v) + " V, V_DS = " + shown(bias.vds_v) + " V";
}

/// Formats a number with five significant digits, for the log.
inline std::string brief(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

}  // namespace quasi::mosfet
