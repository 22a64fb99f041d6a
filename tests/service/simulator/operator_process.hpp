#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/service/simulator/client_process.hpp"

namespace quasi::sim {

/// The commands of an operator, who takes workers and devices out of service, puts them back, and
/// preempts jobs.
class OperatorProcess {
 public:
  /// A worker by its name, or one device of it.
  struct Place {
    std::string worker;
    std::string device;  ///< "": the whole worker
  };

  OperatorProcess(const Surroundings& around, std::vector<Place> places)
      : around_(around), places_(std::move(places)) {}

  /// Takes a random place out of service or puts it back.
  void give_order();
  /// Preempts a job that has not ended.
  void preempt();
  /// Puts every place back into service.
  void end_all_orders();

 private:
  void order(const Place& place, bool end);

  Surroundings around_;
  std::vector<Place> places_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  int orders_ = 0;
};

}  // namespace quasi::sim
