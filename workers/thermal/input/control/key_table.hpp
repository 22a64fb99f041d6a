#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "workers/thermal/input/control/namelist.hpp"
#include "workers/thermal/physics/vectors.hpp"

namespace quasi::thermal {

/// The keys that a deck may set, each with its namelist group and the function that stores its
/// value. The targets given to the members must outlive the table.
class KeyTable {
 public:
  using Store = std::function<void(const NamelistAssignment&)>;

  /// Adds a key. @param group  namelist group; "" for a key that may stand in any group
  void add(const std::string& group, const std::string& name, Store store);
  /// Adds an integer that gives the extent of arrays. Such keys are read before all others.
  void add_extent(const std::string& name, int& target, int low, int high);

  void flag(const std::string& group, const std::string& name, bool& target);
  void integer(const std::string& group, const std::string& name, int& target, int low, int high);
  /// Adds a number that is not below `low`.
  void at_least(const std::string& group, const std::string& name, double& target, double low);
  /// Adds a number above 0.
  void positive(const std::string& group, const std::string& name, double& target);
  /// Adds three integers from 1 to `high`.
  void index3(const std::string& group, const std::string& name, Index3& target, int high);
  /// Adds a number of samples: −1 (no sampling) or at least 1.
  void samples(const std::string& name, std::int64_t& target);
  /// Adds one word out of `choices`, in lower case.
  void word(const std::string& name, std::string& target, std::vector<std::string> choices);
  /// Adds a list of numbers that are above 0.
  void list_above_zero(const std::string& name, std::vector<double>& target);
  /// Adds a list of numbers that are not negative.
  void list_from_zero(const std::string& name, std::vector<double>& target);

  std::vector<std::string> names() const;
  /// Stores the extents among the assignments and ignores all other keys.
  void read_extents(const std::vector<NamelistAssignment>& assignments) const;
  /// Stores all assignments in their order, extents first, and notes in `given_at` where each key
  /// was set.
  /// @throws InvalidInput for unknown keys with the nearest known one, and for keys in a wrong
  ///         group.
  void store(const std::vector<NamelistAssignment>& assignments,
             std::map<std::string, std::string>& given_at) const;

 private:
  struct Key {
    std::string group;
    Store store;
    bool is_extent = false;
  };
  void list(const std::string& name, std::vector<double>& target, bool zero_allowed);

  std::map<std::string, Key> keys_;
};

/// Values of a list. @throws InvalidInput for subscripts and for empty values.
std::vector<double> real_list(const NamelistAssignment& a);

}  // namespace quasi::thermal
