#include "client/engine/deck_files.hpp"

#include <nlohmann/json.hpp>

#include "client/engine/engine_process.hpp"
#include "client/engine/interrupt.hpp"
#include "client/failure.hpp"

namespace quasi::client {

std::optional<std::vector<NamedFile>> files_by_engine(const std::string& kind,
                                                      const std::filesystem::path& deck) {
  const auto engine = find_engine();
  if (!engine) return std::nullopt;
  const CapturedEnd captured = capture_engine(*engine, {"files", kind, deck.string()});
  if (interrupt::requested())
    throw Failure(static_cast<ExitStatus>(interrupt::exit_status()), "interrupted");
  const ExitStatus status = status_of_engine(captured.end);
  if (status != ExitStatus::kOk) {
    const std::string crash = describe_engine_end(captured.end);
    throw Failure(status, crash.empty() ? engine_sentence(captured.err) : crash,
                  "correct the deck, then try: quasi validate " + kind + " " + deck.string());
  }
  const auto answer = nlohmann::json::parse(captured.out, nullptr, false);
  std::vector<NamedFile> files;
  try {
    for (const auto& entry : answer.at("files"))
      files.push_back(
          {.path = entry.at("path").get<std::string>(),
           .origin = entry.contains("line")
                         ? deck.string() + ":" + std::to_string(entry["line"].get<int>())
                         : ""});
  } catch (const nlohmann::json::exception&) {
    throw Failure(ExitStatus::kUnexpected, "quasi-engine files did not answer with its document",
                  "check that '" + engine->string() + "' has the same version as quasi");
  }
  return files;
}

}  // namespace quasi::client
