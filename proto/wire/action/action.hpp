#pragma once

#include <string>
#include <vector>

#include "quasi/v1/job.pb.h"

/// The action of a job: everything that decides its result, and nothing else. Jobs of equal actions
/// have equal results, so that the server computes one of them (docs/reference/cache.md).
namespace quasi::wire {

/// One thing that decides the result, e.g. {"inputs[deck/CONTROL]", "9f86d0…"}.
struct ActionField {
  std::string name;
  std::string value;

  bool operator==(const ActionField&) const = default;
};

/// The fields of a job in their fixed order: kind, epoch of the kind's results, deck, settings and
/// exports in their order, inputs by slot. Name, labels, device, resources, limits, priority and
/// visibility are not among them. Empty for test work, whose results are not kept.
std::vector<ActionField> action_fields(const v1::JobSpec& spec);

/// SHA-256 over the fields as 64 hexadecimal characters; "" if there are none. Each name and each
/// value is preceded by its length as 8 bytes, lowest first, so that no two lists have equal bytes.
std::string action_digest(const v1::JobSpec& spec);

/// The names of the fields in which two jobs differ, with both values; "absent" for a missing one.
struct ActionDifference {
  std::string name;
  std::string first;
  std::string second;
};
std::vector<ActionDifference> differences(const v1::JobSpec& first, const v1::JobSpec& second);

}  // namespace quasi::wire
