#pragma once

#include "workers/mosfet/model/device_model.hpp"

namespace quasi::mosfet {

/// Returns the E_F − ε at which a subband of one valley in equilibrium would hold ϱ, eV. The
/// inverse of sheet_density(), by Newton's iteration for ln ϱ, whose slope decreases.
/// @param sheet_nm2  ϱ; values below 1e-250 count as 1e-250
double quasi_fermi_gap_ev(const DeviceModel& model, const ValleyPair& valley, double sheet_nm2);

}  // namespace quasi::mosfet
