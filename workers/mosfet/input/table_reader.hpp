#pragma once

#include "workers/io/table_reader.hpp"

namespace quasi::mosfet {

using quasi::shown;
using quasi::TableReader;

}  // namespace quasi::mosfet
