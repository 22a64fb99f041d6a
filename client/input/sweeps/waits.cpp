#include "client/input/sweeps/waits.hpp"

#include <algorithm>

#include "client/input/job_ids.hpp"

namespace quasi::client {

void add_waits(Session& session, const JobArguments& arguments, v1::JobSpec& spec) {
  const auto add = [&](const std::vector<std::string>& words, v1::Dependency::Condition condition) {
    if (words.empty()) return;
    for (const std::string& id : resolve_job_ids(session, words)) {
      const auto& others = spec.depends_on();
      if (std::any_of(others.begin(), others.end(),
                      [&](const v1::Dependency& other) { return other.job_id() == id; }))
        continue;
      v1::Dependency& dependency = *spec.add_depends_on();
      dependency.set_job_id(id);
      dependency.set_condition(condition);
    }
  };
  add(arguments.after, v1::Dependency::CONDITION_SUCCESS);
  add(arguments.after_any, v1::Dependency::CONDITION_FINISHED);
  for (const std::string& text : arguments.takes) {
    const auto equals = text.find('=');
    const auto colon = text.find(':', equals);
    if (equals == std::string::npos || equals == 0 || colon == std::string::npos)
      throw Failure(ExitStatus::kUsage, "--take: '" + text + "' is not of the form SLOT=JOB:FILE",
                    "e.g. --take deck/epsilon.h5=last:epsilon.h5");
    const std::string slot = text.substr(0, equals);
    auto& inputs = *spec.mutable_inputs();
    inputs.erase(std::remove_if(inputs.begin(), inputs.end(),
                                [&](const v1::Input& input) { return input.slot() == slot; }),
                 inputs.end());
    v1::Input& input = *spec.add_inputs();
    input.set_slot(slot);
    input.mutable_from()->set_job_id(
        resolve_job_id(session, text.substr(equals + 1, colon - equals - 1)));
    input.mutable_from()->set_artifact(text.substr(colon + 1));
  }
}

}  // namespace quasi::client
