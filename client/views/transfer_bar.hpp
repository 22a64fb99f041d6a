#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "client/views/console.hpp"

namespace quasi::client {

/// One line about a file transfer, if standard error is a terminal:
///
///     uploading  deck/FILE  [######............]  1.2 GiB of 3.0 GiB  182 MiB/s  eta 10 s
class TransferBar {
 public:
  TransferBar(Console& console, std::string verb, std::string name);
  ~TransferBar() { clear(); }
  TransferBar(const TransferBar&) = delete;
  TransferBar& operator=(const TransferBar&) = delete;

  void show(std::uint64_t done, std::uint64_t total);
  void clear();

  /// Text "  (12 s, 162 MiB/s)" since the bar was made; "" for less than a second.
  std::string pace(std::uint64_t bytes) const;

 private:
  double elapsed_s() const;
  Console& console_;
  std::string verb_, name_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_{};
  std::uint64_t first_done_ = 0;
  bool begun_ = false;
  bool shown_ = false;
};

}  // namespace quasi::client
