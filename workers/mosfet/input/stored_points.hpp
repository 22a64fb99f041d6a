#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "workers/mosfet/model/bias.hpp"

namespace quasi::mosfet {

struct Deck;

/// A bias point of a finished run, from which a run on another mesh starts.
struct StoredPoint {
  BiasPoint bias;
  std::vector<double> x_nm, z_nm;         ///< nodes, rising
  std::vector<double> potential_v;        ///< [nx][nz]
  std::size_t valleys = 0, subbands = 0;  ///< valley pairs, subbands of each
  std::vector<double> sheet_nm2;          ///< ϱ of one valley of a pair [valleys][subbands][nx]
  std::array<double, 2> inflow_scale{1.0, 1.0};  ///< at source and drain
  std::vector<double> energy_ev;  ///< bottoms of the subbands [valleys][subbands][nx]
};

/// Reads the points of the file that run.start_from names, and notes how many of the deck's points
/// are among them. Nothing is done without the key.
/// @param directory  folder of the deck @param where  name of the deck, for messages
/// @throws InvalidInput naming the key, the file, what it lacks and the remedy
void read_stored_points(const std::filesystem::path& directory, const std::string& where,
                        Deck* deck);

/// Returns the point of a bias; null if there is none.
const StoredPoint* find_stored(const std::vector<StoredPoint>& points, const BiasPoint& bias);

}  // namespace quasi::mosfet
