#include "workers/engine/run_task.hpp"

#include <algorithm>
#include <fstream>
#include <new>

#include "workers/backend/error.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/engine/input_record.hpp"
#include "workers/engine/task_registry.hpp"
#include "workers/engine/utf8.hpp"

namespace quasi {
namespace {

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  if (!out.flush()) throw StorageError("cannot write '" + path.string() + "'; is the disk full?");
}

}  // namespace

ExitStatus guarded(const std::function<void()>& body, std::string* message) {
  try {
    body();
    return ExitStatus::kOk;
  } catch (const InvalidInput& failure) {
    *message = failure.what();
    return ExitStatus::kInvalidInput;
  } catch (const NotConverged& failure) {
    *message = failure.what();
    return ExitStatus::kNumerical;
  } catch (const OutOfMemory& failure) {
    *message = failure.what();
    return ExitStatus::kOutOfMemory;
  } catch (const std::bad_alloc&) {
    *message = "out of host memory";
    return ExitStatus::kOutOfMemory;
  } catch (const DeviceLost& failure) {
    *message = failure.what();
    return ExitStatus::kDeviceFault;
  } catch (const BackendAbsent& failure) {
    *message = failure.what();
    return ExitStatus::kBackendAbsent;
  } catch (const StorageError& failure) {
    *message = failure.what();
    return ExitStatus::kStorage;
  } catch (const Cancelled& failure) {
    *message = failure.what();
    return ExitStatus::kCancelled;
  } catch (const std::exception& failure) {
    *message = std::string("unexpected: ") + failure.what();
    return ExitStatus::kUnexpected;
  }
}

void require_exports(const std::string& kind, const std::vector<std::string>& formats) {
  const std::vector<std::string> known = make_task(kind)->exports();
  for (const std::string& format : formats) {
    if (std::find(known.begin(), known.end(), format) != known.end()) continue;
    if (known.empty())
      throw InvalidInput("export '" + format + "' is unknown: a " + kind +
                         " job writes no further formats. All results are in result.h5; leave " +
                         "the option out");
    std::string list;
    for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
    const std::string nearest = nearest_name(format, known);
    throw InvalidInput("export '" + format + "' is unknown for " + kind +
                       (nearest.empty() ? "" : "; did you mean '" + nearest + "'?") +
                       "; known: " + list);
  }
}

nlohmann::json run_task(const std::string& kind, const RunOptions& options, Progress& progress) {
  require_exports(kind, options.exports);
  const auto task = make_task(kind);
  if (static_cast<int>(options.devices.size()) > task->max_devices())
    throw InvalidInput("kind " + kind + " runs on at most " + std::to_string(task->max_devices()) +
                       " device(s), " + std::to_string(options.devices.size()) +
                       " are named; name fewer with --device");
  const Stopwatch clock;
  use_device(options.devices.front());
  nlohmann::json document{{"schema", "quasi.run.v1"},
                          {"kind", kind},
                          {"version", QUASI_VERSION},
                          {"device", options.devices.front().name()},
                          {"device_model", options.devices.front().model},
                          {"ranks", options.ranks->size()}};
  RunOptions recorded = options;
  if (options.ranks->leads()) recorded.inputs = read_input_record(kind, options.deck);
  document["summary"] = task->run(recorded, progress);
  document["wall_seconds"] = clock.seconds();

  if (!options.ranks->leads()) return document;
  write_text(options.output_directory / "summary.json", indented(document) + '\n');
  write_text(options.output_directory / "table.txt", task->table(document["summary"]));
  return document;
}

}  // namespace quasi
