#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace quasi::test {

/// Files of the host that no job may read. `values.bin` holds kSecret four times, `secret.h5` holds
/// it as the dataset `/flavor`, and `profile.csv`, `CONTROL` and `WFN` begin with it.
struct HostFiles {
  std::filesystem::path folder;      ///< the files above
  std::filesystem::path neighbour;   ///< the deck of another running attempt of the same worker
  std::filesystem::path database;    ///< of the server
  std::filesystem::path socket;      ///< of the server
  std::filesystem::path worker_key;  ///< a file in the worker's state directory
};

/// Eight bytes, so that a file that holds them can be read as one number of 64 bits.
inline constexpr char kSecret[] = "TOP-SECR";

/// All ways in which a message, a log or a result could show kSecret: as text and as numbers.
std::vector<std::string> forms_of_secret();

/// Writes the files of `host.folder`.
void write_host_files(const HostFiles& host);

/// A job that tries to read what it must not, or to use up the host.
struct HostileJob {
  std::string name;
  std::string kind;                                     ///< mosfet, thermal or gw
  std::string deck;                                     ///< text of deck.toml, after the key `kind`
  std::pair<std::string, std::string> setting;          ///< key and value; an empty key means none
  std::map<std::string, std::filesystem::path> inputs;  ///< further files by their name in in/
};

/// Decks and settings that name files outside the inputs.
std::vector<HostileJob> hostile_paths(const HostFiles& host);
/// HDF5 files that name other files, announce sizes that they do not have, or are damaged. They are
/// written below `scratch`.
std::vector<HostileJob> hostile_hdf5_files(const HostFiles& host,
                                           const std::filesystem::path& scratch);
/// Slots of inputs that would lie outside in/. The server must refuse them.
std::vector<std::string> hostile_slots();

}  // namespace quasi::test
